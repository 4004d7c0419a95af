// GROUP BY and aggregates: rows get their group's number on arrival; each aggregate processes a morsel at a time.
#include <algorithm>

#include "exec/compiler.hpp"
#include "exec/key_table.hpp"

namespace penstock::exec {

namespace {

class Group final : public Unary {
public:
    Group(const Spec& spec, Compiler& compiler) : Unary(compiler.child(spec, "in")), seed_(compiler.seed()) {
        const Schema& from = in_->schema();
        keys_ = compiler.slot_list(spec.at("keys"));
        if (const Spec* implicit = spec.find("implicit")) implicit_ = implicit->as_bool();
        for (Slot slot : keys_) {
            int column = from.index_of(slot);
            key_columns_.push_back(column);
            seed_columns_.push_back(seed_.index_of(slot));
            if (implicit_ && seed_columns_.back() < 0) throw Error("plan: an implicit group's key is not in the seed");
            schema_.add(slot, column < 0 || from.nullable[static_cast<std::size_t>(column)] != 0);
        }
        for (const Spec& item : spec.at("aggs").as_list()) {
            if (const Spec* expr = item.find("expr")) compiler.find_sub_plans(*expr, from);
            aggregates_.push_back(Aggregate::compile(item));
            schema_.add(compiler.slot(item.at("out")), true);
        }
        // COUNT(DISTINCT *) compares variables of the query only; the others are equal within a group in any case.
        for (Slot slot : from.slots)
            if (seed_.index_of(slot) >= 0 ||
                (compiler.outer() != nullptr && compiler.outer()->schema.slots.back() == slot))
                hidden_.push_back(slot);
        schema_.shape(buffer_);
    }

private:
    void begin() override {
        groups_.reset(keys_.size());
        if (implicit_) add_seed_groups();
        for (auto& aggregate : aggregates_) aggregate->reset(groups_.size());
    }

    void add_seed_groups() {
        key_data_.clear();
        for (int column : seed_columns_)
            key_data_.push_back(run_->seed.columns[static_cast<std::size_t>(column)].data());
        ids_.resize(run_->seed.rows);
        groups_.assign(key_data_, run_->seed.rows, ids_.data(), run_->budget());
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        key_data_.clear();
        for (int column : key_columns_) {
            if (column < 0) unbound_.assign(kMorsel, kUnbound);
            key_data_.push_back(column < 0 ? unbound_.data() : rows.columns[static_cast<std::size_t>(column)].data());
        }
        ids_.resize(rows.rows);
        std::size_t before = groups_.size();
        groups_.assign(key_data_, rows.rows, ids_.data(), run_->budget());
        for (auto& aggregate : aggregates_) {
            if (groups_.size() != before) aggregate->grow(groups_.size());
            aggregate->add(rows, ids_, hidden_, run_->expressions);
        }
        return true;
    }

    void finish() override {
        results_.resize(aggregates_.size());
        for (std::size_t a = 0; a < aggregates_.size(); ++a) {
            aggregates_[a]->finish(run_->expressions, results_[a]);
            run_->expressions.terms.settle(results_[a].data(), results_[a].size());
        }
        push_groups();
        groups_.release(run_->budget());
        for (auto& aggregate : aggregates_) aggregate->reset(0);
        if (!results_.empty() && results_[0].capacity() > 4 * kMorsel) results_.clear();
    }

    void push_groups() {
        auto copy = [](const Column& from, std::size_t first, std::size_t n, Column& to) {
            auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
            to.assign(begin, begin + static_cast<std::ptrdiff_t>(n));
        };
        for (std::size_t first = 0; first < groups_.size(); first += kMorsel) {
            std::size_t n = std::min(kMorsel, groups_.size() - first);
            for (std::size_t c = 0; c < keys_.size(); ++c) copy(groups_.column(c), first, n, buffer_.columns[c]);
            for (std::size_t a = 0; a < results_.size(); ++a)
                copy(results_[a], first, n, buffer_.columns[keys_.size() + a]);
            buffer_.rows = n;
            run_->work(n);
            if (!out_->push(buffer_)) return;
        }
    }

    const Schema seed_;
    std::vector<Slot> keys_, hidden_;
    std::vector<int> key_columns_, seed_columns_;
    std::vector<std::unique_ptr<Aggregate>> aggregates_;
    bool implicit_ = false;
    KeyTable groups_;
    std::vector<const TermId*> key_data_;
    std::vector<std::uint32_t> ids_;
    Column unbound_;
    std::vector<Column> results_;
    Table buffer_;
};

}  // namespace

OperatorPtr make_group(const Spec& spec, Compiler& compiler) { return std::make_unique<Group>(spec, compiler); }

}  // namespace penstock::exec
