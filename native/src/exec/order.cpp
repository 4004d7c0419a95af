// ORDER BY: the member first. It keeps its rows from run to run, and updates their order (ADR 78, 89). Without
// state, it retains only rows that can still be among the first ones, if only those are wanted.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "exec/collected.hpp"
#include "exec/compiler.hpp"
#include "exec/maintained_input.hpp"
#include "exec/output_change.hpp"
#include "exec/ranked_rows.hpp"
#include "exec/row_order.hpp"
#include "expr/steady.hpp"

namespace penstock::exec {

namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kAll = std::size_t{1} << 40;  // more rows than there can be

bool has_steady_keys(const Spec& spec) {
    return std::ranges::all_of(spec.at("keys").as_list(),
                               [](const Spec& key) { return expr::is_steady(key.at("expr")); });
}

class Order final : public Operator, private Sink {
public:
    Order(const Spec& spec, Compiler& compiler) : Order(spec, compiler, compiler.profile_ids().size()) {}

private:
    /// A sort key that is not a variable of the input; its values are a further column.
    struct Computed {
        std::unique_ptr<Expression> value;
        std::size_t column;
    };

    Order(const Spec& spec, Compiler& compiler, std::size_t first)
        : in_(compiler.child(spec, "in")),
          limited_(spec.find("first") != nullptr),
          input_(static_cast<std::uint32_t>(spec.at("id").as_int()), spec.at("in"), in_->schema().slots, first,
                 compiler, has_steady_keys(spec)) {
        correlated_ = in_->correlated();
        schema_ = held_ = in_->schema();
        if (limited_) first_ = spec.at("first").as_int();
        const int member = compiler.slot_at(spec, "member");
        if (member >= 0) {
            member_ = schema_.index_of(static_cast<Slot>(member));
            if (member_ < 0) throw Error("plan: 'order' over rows without their member");
        }
        for (const Spec& key : spec.at("keys").as_list()) add_key(key, compiler);
        shape_.carried = schema_.slots.size();
        shape_.width = held_.slots.size();
        reads_change_ = has_steady_keys(spec) && give_change_of(*in_, change_);
        for (std::size_t c = 0; c < shape_.carried; ++c)
            if (input_.computes(schema_.slots[c]) || std::ranges::count(change_.computed, schema_.slots[c]) != 0)
                computed_.push_back(c);
        held_.shape(extended_);
        schema_.shape(buffer_);
    }

    void add_key(const Spec& key, Compiler& compiler) {
        const Spec* descending = key.find("desc");
        const Spec* variable = key.at("expr").find("var");
        const int column = variable == nullptr ? -1 : schema_.index_of(compiler.slot(*variable));
        shape_.keys.push_back({column < 0 ? held_.slots.size() : static_cast<std::size_t>(column),
                               descending != nullptr && descending->as_bool()});
        if (column >= 0) return;
        computed_.push_back(held_.slots.size());
        values_.push_back({compiler.expression(key.at("expr"), schema_), held_.slots.size()});
        held_.add(0, true);
    }

    void produce(Run& run, Sink& out) override {
        run_ = &run;
        out_ = &out;
        begin();
        feed();
        finish();
        if (!correlated_) input_.report(run, retained_ ? state_bytes() : 0);
    }

    void begin() {
        const bool retained = std::exchange(retained_, false);
        obstacle_ = Outcome::Updated;
        state_.emplace();
        if (reads_change_) {
            change_.requested = retained && !exceeds_budget();
            open_ = false;
            return;
        }
        updates_ = input_.can_update(*run_) && retained;
        if (updates_ && exceeds_budget()) {
            updates_ = false;
            input_.fall_back(Outcome::Budget);
        }
        tracks_ = updates_ || input_.wants_state(*run_);
        take_up();
    }

    void take_up() {
        if (updates_)
            state_->set(run_->budget(), state_bytes());
        else
            start_over();
    }

    /// With a giver of changes: called before its first row, or at its end.
    void open() {
        if (std::exchange(open_, true)) return;
        updates_ = change_.given;
        if (updates_)
            input_.updated_from(0);
        else
            input_.fall_back(change_.outcome == Outcome::Updated ? Outcome::NoState : change_.outcome);
        tracks_ = updates_ || (change_.tracks && rest_ == 0);
        if (rest_ != 0) --rest_;
        take_up();
    }

    void start_over() {
        ranked_.clear();
        rows_.begin(*run_, held_);
        // The rows of several members are not told apart here.
        limit_ = limited_ && (member_ < 0 || run_->seed.rows == 1) ? first_ : kNoLimit;
    }

    void feed() {
        const std::uint64_t before = pushed();
        if (reads_change_ || !updates_)
            in_->run(*run_, *this);
        else
            input_.run_changes(*run_, *this, sign_);
        if (reads_change_) open();
        if (reads_change_ && updates_) input_.updated_from(pushed() - before);
        if (obstacle_ == Outcome::Updated) return;
        // An evaluation without state. The rows of a giver that has evaluated its input completely are collected.
        const bool again = updates_ || !reads_change_;
        if (updates_) input_.fall_back(obstacle_);
        updates_ = tracks_ = change_.requested = false;
        drop_state();
        if (!again) return;
        start_over();
        in_->run(*run_, *this);
    }

    void drop_state() {
        state_->release(run_->budget());
        ranked_.clear();
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        if (reads_change_) open();
        for (const Computed& key : values_) key.value->evaluate(rows, run_->expressions, extended_.columns[key.column]);
        for (std::size_t c = 0; c < shape_.carried; ++c) std::swap(extended_.columns[c], rows.columns[c]);
        extended_.rows = rows.rows;
        for (const SortKey& key : shape_.keys) {
            const Column& column = extended_.columns[key.column];
            const std::size_t fetched = run_->expressions.terms.dictionary().require(column.data(), rows.rows);
            run_->budget().charge(static_cast<std::ptrdiff_t>(fetched));
        }
        if (tracks_ && !rank(extended_) && !reads_change_) return false;
        if (tracks_ && (updates_ || !reads_change_)) return true;
        rows_.push(extended_);
        if (limit_ != kNoLimit && rows_.table().rows >= 4 * limit_ + 4 * kMorsel) prune();
        return true;
    }

    /// Adds the rows to the state, or removes them. Returns false if there is an obstacle.
    bool rank(const Table& rows) {
        for (const std::size_t column : computed_)
            for (const TermId id : std::span(rows.columns[column]).first(rows.rows))
                if (!is_lasting(id)) obstacle_ = Outcome::RunTerms;
        if (exceeds_budget()) obstacle_ = Outcome::Budget;
        if (obstacle_ != Outcome::Updated) return false;
        const LocalTerms& terms = run_->expressions.terms;
        row_.resize(shape_.width);
        added_ += rows.rows;
        // A list that grows has up to twice the size that it needs.
        state_->set(run_->budget(), state_bytes() + 2 * added_ * (shape_.width + 1) * sizeof(TermId));
        for (std::size_t i = 0; i < rows.rows; ++i) {
            for (std::size_t c = 0; c < shape_.width; ++c) row_[c] = rows.columns[c][i];
            const TermId member = member_ < 0 ? 0 : row_[static_cast<std::size_t>(member_)];
            ranked_.try_emplace(member, shape_, first_, slack())
                .first->second.add(row_.data(), reads_change_ ? change_.sign : sign_, terms);
        }
        return true;
    }

    bool before(std::uint32_t a, std::uint32_t b) const {
        const Table& table = rows_.table();
        if (member_ >= 0) {
            const Column& member = table.columns[static_cast<std::size_t>(member_)];
            if (member[a] != member[b]) return member[a] < member[b];
        }
        const auto cells_of = [&](std::uint32_t row) {
            return [&table, row](std::size_t column) { return table.columns[column][row]; };
        };
        return compare_rows(shape_.keys, shape_.carried, cells_of(a), cells_of(b), run_->expressions.terms) < 0;
    }

    /// Sets order_ to the rows in order, at most `limit` of them.
    void sort(std::size_t limit) {
        const Table& table = rows_.table();
        order_charge_.set(run_->budget(), table.rows * 2 * sizeof(std::uint32_t));
        order_.resize(table.rows);
        std::iota(order_.begin(), order_.end(), 0u);
        std::size_t steps = 0;
        auto less = [&](std::uint32_t a, std::uint32_t b) {
            if ((++steps & 0xFFF) == 0) run_->budget().check();
            return before(a, b);
        };
        if (limit < table.rows) {
            std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(limit), order_.end(), less);
            order_.resize(limit);
        } else {
            std::stable_sort(order_.begin(), order_.end(), less);
        }
    }

    /// Retains the first `limit_` of the collected rows.
    void prune() {
        sort(limit_);
        std::sort(order_.begin(), order_.end());
        Table& table = rows_.table();
        for (Column& column : table.columns) {
            for (std::size_t i = 0; i < order_.size(); ++i) column[i] = column[order_[i]];
            column.resize(order_.size());
        }
        table.rows = order_.size();
    }

    void finish() {
        if (tracks_)
            push_ranked();
        else
            push_sorted();
        if (!updates_) input_.evaluated(*run_);
        if (tracks_ && exceeds_budget()) {
            obstacle_ = Outcome::Budget;
            tracks_ = false;
            drop_state();
        }
        if (obstacle_ != Outcome::Updated) {
            input_.give_up(obstacle_);
            rest_ = kRest;
        } else if (tracks_ && reads_change_) {
            retained_ = change_.can_follow;
            if (!retained_) drop_state();
        } else if (tracks_) {
            input_.keep(*run_);
            retained_ = true;
        }
    }

    void push_sorted() {
        sort(limit_);
        Table& table = rows_.table();
        std::vector<Column> keys;
        while (table.columns.size() > shape_.carried) {  // without the columns of computed keys
            keys.push_back(std::move(table.columns.back()));
            table.columns.pop_back();
            table.slots.pop_back();
        }
        push_rows(table, order_, buffer_, *run_, *out_);
        rows_.release(run_->budget());
        order_charge_.release(run_->budget());
        if (order_.capacity() > 4 * kMorsel) order_ = {};
    }

    /// Pushes the first rows of each member from the state.
    void push_ranked() {
        added_ = 0;
        for (auto& [member, rows] : ranked_) rows.settle(run_->expressions);
        state_->set(run_->budget(), state_bytes());
        bool more = true;
        clear_buffer();
        const auto flush = [&] {
            run_->work(buffer_.rows);
            more = more && (buffer_.rows == 0 || out_->push(buffer_));
            clear_buffer();
        };
        for (auto& [member, rows] : ranked_)
            rows.for_each_first([&](const TermId* row, std::int64_t count) {
                for (; count > 0 && more; --count) {
                    for (std::size_t c = 0; c < shape_.carried; ++c) buffer_.columns[c].push_back(row[c]);
                    if (++buffer_.rows == kMorsel) flush();
                }
            });
        flush();
    }
    void clear_buffer() {
        for (Column& column : buffer_.columns) column.clear();
        buffer_.rows = 0;
    }

    /// If state is always kept, for tests, a few rows are enough to use all of its structure.
    static std::size_t slack() {
        return Maintenance::from.load(std::memory_order_relaxed) == 0 ? 1 : RankedRows::kSlack;
    }
    std::size_t state_bytes() const {
        std::size_t bytes = 0;
        for (const auto& [member, rows] : ranked_) bytes += sizeof rows + rows.bytes();
        return bytes;
    }
    /// Retained state and its growth must leave room for the rest of an evaluation.
    bool exceeds_budget() const {
        const std::size_t left = run_->budget().bytes_left();
        return left != 0 && 4 * state_bytes() > left;
    }

    OperatorPtr in_;
    RankedShape shape_;
    std::vector<Computed> values_;
    int member_ = -1;
    bool limited_;  // only the first rows of each member are wanted
    std::size_t first_ = kAll, limit_ = kNoLimit;
    Schema held_;  // the input's columns, then those of computed keys
    Run* run_ = nullptr;
    Sink* out_ = nullptr;
    Collected rows_;
    Table extended_, buffer_;
    std::vector<std::uint32_t> order_;
    Charge order_charge_;

    // State from run to run (ADR 78).
    MaintainedInput input_;
    std::map<TermId, RankedRows> ranked_;  // by member
    std::optional<Charge> state_{std::in_place};
    std::vector<std::size_t> computed_;  // columns that expressions compute
    std::vector<TermId> row_;
    std::size_t added_ = 0;  // rows of this run
    bool retained_ = false, tracks_ = false, updates_ = false;
    Outcome obstacle_ = Outcome::Updated;  // why this run cannot keep state
    int sign_ = 1;
    // If the input is an operator that gives the change of its output.
    static constexpr std::uint32_t kRest = 16;  // evaluations without state after an obstacle
    OutputChange change_;
    bool reads_change_ = false, open_ = false;
    std::uint32_t rest_ = 0;
};

}  // namespace

OperatorPtr make_order(const Spec& spec, Compiler& compiler) { return std::make_unique<Order>(spec, compiler); }

}  // namespace penstock::exec
