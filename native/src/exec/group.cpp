// GROUP BY and aggregates: rows get their group's number on arrival; each aggregate processes a morsel at a time.
#include <algorithm>
#include <optional>
#include <utility>

#include "exec/collected.hpp"
#include "exec/compiler.hpp"
#include "exec/kernels.hpp"
#include "exec/key_counts.hpp"
#include "exec/key_table.hpp"
#include "exec/maintained_input.hpp"
#include "exec/output_change.hpp"
#include "expr/removable.hpp"

namespace penstock::exec {

namespace {

class Group final : public Operator, public ChangeGiver, private Sink {
public:
    Group(const Spec& spec, Compiler& compiler) : Group(spec, compiler, compiler.profile_ids().size()) {}

    bool give_change(OutputChange& change) override {
        for (const int column : computed_keys_)
            change.computed.push_back(in_->schema().slots[static_cast<std::size_t>(column)]);
        change.computed.insert(change.computed.end(), schema_.slots.begin() + static_cast<std::ptrdiff_t>(keys_.size()),
                               schema_.slots.end());
        if (!correlated_) change_ = &change;
        return !correlated_;
    }

private:
    Group(const Spec& spec, Compiler& compiler, std::size_t first)
        : in_(compiler.child(spec, "in")),
          seed_(compiler.seed()),
          input_(static_cast<std::uint32_t>(spec.at("id").as_int()), spec.at("in"), in_->schema().slots, first,
                 compiler) {
        correlated_ = in_->correlated();
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
            if (auto* removable = dynamic_cast<RemovableAggregate*>(aggregates_.back().get());
                removable != nullptr && removable->removable([this](Slot slot) { return input_.computes(slot); }))
                removables_.push_back(removable);
        }
        if (removables_.size() != aggregates_.size()) input_.drop(Outcome::Unsupported);
        for (std::size_t i = 0; i < keys_.size(); ++i)
            if (key_columns_[i] >= 0 && input_.computes(keys_[i])) computed_keys_.push_back(key_columns_[i]);
        // COUNT(DISTINCT *) compares variables of the query only; the others are equal within a group in any case.
        for (Slot slot : from.slots)
            if (seed_.index_of(slot) >= 0 ||
                (compiler.outer() != nullptr && compiler.outer()->schema.slots.back() == slot))
                hidden_.push_back(slot);
        schema_.shape(buffer_);
    }

    void begin() {
        if (resume()) return;
        updates_ = false;
        start_over();
    }

    /// Takes up the state of the last run, if it can be updated.
    bool resume() {
        const bool retained = std::exchange(retained_, false);
        state_.emplace();
        updates_ = input_.can_update(*run_) && retained;
        if (updates_ && exceeds_budget()) {
            updates_ = false;
            input_.fall_back(Outcome::Budget);
        }
        tracks_ = updates_ || (removables_.size() == aggregates_.size() && input_.wants_state(*run_));
        if (updates_) {
            state_->set(run_->budget(), table_bytes());
            for (auto& aggregate : removables_) aggregate->resume(run_->expressions);
        } else if (retained) {
            groups_.emplace();
        }
        return updates_;
    }

    void start_over() {
        lasting_ = true;
        groups_->reset(keys_.size());
        counts_.begin();
        if (implicit_) add_seed_groups();
        for (auto& aggregate : aggregates_) aggregate->reset(groups_->size());
        for (auto* aggregate : removables_) aggregate->track(tracks_);
    }

    void produce(Run& run, Sink& out) override {
        run_ = &run;
        out_ = &out;
        begin();
        feed();
        finish();
        if (!correlated_) input_.report(run, retained_ ? state_bytes() : 0);
    }

    void feed() {
        if (!updates_) return in_->run(*run_, *this);
        counts_.begin_update(true);
        input_.run_changes(*run_, *this, sign_);
        if (lasting()) return;
        // Keys or values are terms of this run only: a new evaluation, without state.
        updates_ = tracks_ = false;
        input_.fall_back(Outcome::RunTerms);
        groups_.emplace();
        state_->release(run_->budget());
        start_over();
        in_->run(*run_, *this);
    }

    bool lasting() const {
        return lasting_ && std::ranges::all_of(removables_, [](const auto* aggregate) { return aggregate->lasting(); });
    }

    void add_seed_groups() {
        key_data_.clear();
        for (int column : seed_columns_)
            key_data_.push_back(run_->seed.columns[static_cast<std::size_t>(column)].data());
        ids_.resize(run_->seed.rows);
        groups_->assign(key_data_, run_->seed.rows, ids_.data(), run_->budget());
    }

    std::size_t table_bytes() const { return groups_->size() * (keys_.size() + 3) * sizeof(TermId) + counts_.bytes(); }
    std::size_t state_bytes() const {
        std::size_t bytes = table_bytes();
        for (const auto& aggregate : removables_) bytes += aggregate->bytes();
        for (const Column& column : results_) bytes += column.capacity() * sizeof(TermId);
        for (const auto& groups : run_terms_) bytes += groups.capacity() * sizeof(std::uint32_t);
        return bytes;
    }
    /// Retained state and its growth must leave room for the rest of an evaluation.
    bool exceeds_budget() const {
        const std::size_t left = run_->budget().bytes_left();
        return left != 0 && 4 * state_bytes() > left;
    }

    /// Counts the rows of the groups `ids_`, and records which groups change.
    void track(const Table& rows) {
        for (const int column : computed_keys_)
            for (std::size_t i = 0; i < rows.rows; ++i)
                lasting_ &= is_lasting(rows.columns[static_cast<std::size_t>(column)][i]);
        counts_.add(ids_, groups_->size(), sign_);
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        key_data_.clear();
        for (int column : key_columns_) {
            if (column < 0) unbound_.assign(kMorsel, kUnbound);
            key_data_.push_back(column < 0 ? unbound_.data() : rows.columns[static_cast<std::size_t>(column)].data());
        }
        ids_.resize(rows.rows);
        std::size_t before = groups_->size();
        groups_->assign(key_data_, rows.rows, ids_.data(), run_->budget());
        if (tracks_) track(rows);
        for (auto& aggregate : aggregates_) {
            if (groups_->size() != before) aggregate->grow(groups_->size());
            if (sign_ > 0) aggregate->add(rows, ids_, hidden_, run_->expressions);
        }
        for (std::size_t a = 0; sign_ < 0 && a < removables_.size(); ++a)
            removables_[a]->remove(rows, ids_, hidden_, run_->expressions);
        return true;
    }

    void finish() {
        results_.resize(aggregates_.size());
        run_terms_.resize(aggregates_.size());
        const bool gives = gives_change();
        if (gives) find_previous();
        for (std::size_t a = 0; a < aggregates_.size(); ++a) {
            if (updates_) {
                update_results(a);
                continue;
            }
            aggregates_[a]->finish(run_->expressions, results_[a]);
            run_->expressions.terms.settle(results_[a].data(), results_[a].size());
            run_terms_[a].clear();
            for (std::uint32_t group = 0; tracks_ && group < results_[a].size(); ++group)
                if (!is_lasting(results_[a][group])) run_terms_[a].push_back(group);
        }
        if (change_ != nullptr) {
            change_->given = gives;
            change_->tracks = tracks_;
            change_->outcome = input_.outcome();
            change_->can_follow = false;
        }
        const bool complete = gives ? push_change() : push_groups();
        if (!updates_) input_.evaluated(*run_);
        const Outcome obstacle = !complete                       ? Outcome::Stopped
                                 : !lasting()                    ? Outcome::RunTerms
                                 : 2 * empty() > groups_->size() ? Outcome::Emptied
                                 : tracks_ && exceeds_budget()   ? Outcome::Budget
                                                                 : Outcome::Updated;
        if (tracks_ && obstacle == Outcome::Updated) {
            input_.keep(*run_);
            retained_ = true;
            if (change_ != nullptr) change_->can_follow = true;
            return;
        }
        if (tracks_) input_.drop(obstacle);
        if (updates_) {
            groups_.emplace();
            state_->release(run_->budget());
        } else {
            groups_->release(run_->budget());
        }
        for (auto& aggregate : aggregates_) aggregate->reset(0);
        if (!results_.empty() && results_[0].capacity() > 4 * kMorsel) results_.clear();
    }

    /// Computes the results of changed groups, and those that are terms of the last run only.
    void update_results(std::size_t aggregate) {
        Column& results = results_[aggregate];
        results.resize(groups_->size());
        std::vector<std::uint32_t> groups = counts_.changed();
        for (const std::uint32_t group : run_terms_[aggregate])
            if (!counts_.is_changed(group)) groups.push_back(group);
        Column found;
        removables_[aggregate]->results(run_->expressions, groups, found);
        run_->expressions.terms.settle(found.data(), found.size());
        run_terms_[aggregate].clear();
        for (std::size_t i = 0; i < groups.size(); ++i) {
            results[groups[i]] = found[i];
            if (!is_lasting(found[i])) run_terms_[aggregate].push_back(groups[i]);
        }
    }

    /// Whether the reader gets the change of the groups. Results that are terms of the last run only cannot be removed.
    bool gives_change() const {
        if (change_ == nullptr || !updates_ || !change_->requested) return false;
        return std::ranges::all_of(results_, [this](const Column& results) {
            return std::ranges::all_of(counts_.changed(), [&](std::uint32_t group) {
                return group >= results.size() || is_lasting(results[group]);
            });
        });
    }

    /// The rows of the changed groups in the last output.
    void find_previous() {
        schema_.shape(previous_);
        for (std::size_t i = 0; i < counts_.changed().size(); ++i) {
            const std::uint32_t group = counts_.changed()[i];
            if (!implicit_ && counts_.before(i) == 0) continue;
            for (std::size_t c = 0; c < keys_.size(); ++c) previous_.columns[c].push_back(groups_->column(c)[group]);
            for (std::size_t a = 0; a < results_.size(); ++a)
                previous_.columns[keys_.size() + a].push_back(results_[a][group]);
            ++previous_.rows;
        }
    }

    /// Pushes the previous rows of the changed groups, which leave the output, and then their present rows.
    bool push_change() {
        change_->sign = -1;
        const bool complete = push_all(previous_, buffer_, *run_, *out_);
        change_->sign = 1;
        full_.clear();
        for (const std::uint32_t group : counts_.changed())
            if (implicit_ || counts_.rows(group) != 0) full_.push_back(group);
        return complete && push(false, full_.size());
    }

    /// Groups whose rows were all removed are no groups of the answer; those of an implicit GROUP BY always are.
    std::size_t empty() const { return implicit_ ? 0 : counts_.empty(); }
    bool push_groups() {
        const bool all = empty() == 0;
        if (!all) counts_.occurring(full_);
        return push(all, all ? groups_->size() : full_.size());
    }
    /// Pushes the first `count` groups, or those in `full_`. Returns whether all were pushed.
    bool push(bool all, std::size_t count) {
        const auto copy = [this, all](const Column& from, std::size_t first, std::size_t n, Column& to) {
            const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
            to.clear();
            if (all)
                to.assign(begin, begin + static_cast<std::ptrdiff_t>(n));
            else
                gather(from, std::span(full_).subspan(first, n), to);
        };
        for (std::size_t first = 0; first < count; first += kMorsel) {
            const std::size_t n = std::min(kMorsel, count - first);
            for (std::size_t c = 0; c < keys_.size(); ++c) copy(groups_->column(c), first, n, buffer_.columns[c]);
            for (std::size_t a = 0; a < results_.size(); ++a)
                copy(results_[a], first, n, buffer_.columns[keys_.size() + a]);
            buffer_.rows = n;
            run_->work(n);
            if (!out_->push(buffer_)) return false;
        }
        return true;
    }

    OperatorPtr in_;
    const Schema seed_;
    std::vector<Slot> keys_, hidden_;
    std::vector<int> key_columns_, seed_columns_;
    std::vector<std::unique_ptr<Aggregate>> aggregates_;
    std::vector<RemovableAggregate*> removables_;  // those from which rows can be removed
    bool implicit_ = false;
    Run* run_ = nullptr;
    Sink* out_ = nullptr;
    std::optional<KeyTable> groups_{std::in_place};
    std::optional<Charge> state_{std::in_place};  // of a state of an earlier run
    std::vector<const TermId*> key_data_;
    std::vector<std::uint32_t> ids_;
    Column unbound_;
    std::vector<Column> results_;
    std::vector<std::vector<std::uint32_t>> run_terms_;  // by aggregate: groups whose results are terms of the run only
    Table buffer_;

    // State from run to run (ADR 78).
    MaintainedInput input_;
    std::vector<int> computed_keys_;  // columns of keys that expressions compute
    bool retained_ = false, tracks_ = false, updates_ = false;
    bool lasting_ = true;  // keys have the same ids in every run
    int sign_ = 1;
    KeyCounts counts_;  // of rows, by group
    std::vector<std::uint32_t> full_;
    OutputChange* change_ = nullptr;  // of the reader, if there is one that wants changes
    Table previous_;
};

}  // namespace

OperatorPtr make_group(const Spec& spec, Compiler& compiler) { return std::make_unique<Group>(spec, compiler); }

}  // namespace penstock::exec
