#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "expr/aggregate_states.hpp"
#include "expr/counted_values.hpp"
#include "expr/distinct.hpp"
#include "expr/expression.hpp"
#include "expr/holding.hpp"
#include "expr/looked_at.hpp"
#include "expr/node.hpp"
#include "expr/removable.hpp"
#include "expr/row_count.hpp"
#include "expr/steady.hpp"

namespace penstock {
namespace {

using namespace expr;

/// An aggregate over the values of an expression, with one State per group.
template <class State>
class ValueAggregate final : public RemovableAggregate {
public:
    ValueAggregate(const Spec& expression, bool distinct, AggregateOptions options)
        : expression_(compile_node(expression)),
          looked_at_(looked_at(expression)),
          options_(std::move(options)),
          distinct_(distinct),
          steady_(is_steady(expression)) {
        if (const Spec* slot = expression.find("var")) variable_ = slot->as_int();
    }

    void reset(std::size_t groups) override {
        states_.clear();
        seen_ = RowSet(2);
        counted_ = CountedValues();
        errors_.clear();
        stale_.clear();
        counts_ = false;
        lasting_ = true;
        inner_bytes_ = 0;
        holding_.forget();
        states_.resize(groups);
    }
    void grow(std::size_t groups) override {
        if (groups > states_.size()) states_.resize(groups);
    }

    void add(const Table& rows, std::span<const std::uint32_t> group_of, std::span<const Slot>,
             ExprContext& context) override {
        update<false>(rows, group_of, context);
    }
    bool removable(const std::function<bool(Slot)>& computes) override {
        data_ = variable_ && !computes(static_cast<Slot>(*variable_));
        return steady_;
    }
    void track(bool tracks) override { counts_ = tracks && (distinct_ || !kRemovable); }
    bool lasting() const override { return lasting_; }
    void remove(const Table& rows, std::span<const std::uint32_t> group_of, std::span<const Slot>,
                ExprContext& context) override {
        update<true>(rows, group_of, context);
    }
    void resume(ExprContext& context) override {
        holding_.forget();
        holding_.set(held_bytes(), context.budget);
    }
    std::size_t bytes() const override { return held_bytes(); }
    void results(ExprContext& context, std::span<const std::uint32_t> groups, Column& out) override {
        static const Table no_rows;
        Frame frame(no_rows, context);
        out.resize(groups.size());
        for (std::size_t i = 0; i < groups.size(); ++i) {
            if (groups[i] < stale_.size() && std::exchange(stale_[groups[i]], 0) != 0) collect(groups[i], frame);
            out[i] = frame.intern(states_[groups[i]].result(frame, options_));
            if (i % kChunk == kChunk - 1) frame.end_chunk();
        }
        frame.end_chunk();
    }

    void finish(ExprContext& context, Column& out) override {
        static const Table no_rows;
        Frame frame(no_rows, context);
        out.resize(states_.size());
        for (std::size_t group = 0; group < states_.size(); ++group) {
            out[group] = frame.intern(states_[group].result(frame, options_));
            if (group % kChunk == kChunk - 1) frame.end_chunk();
        }
        frame.end_chunk();
        holding_.set(0, context.budget);
    }

private:
    /// Whether a state of its own can lose a value. Otherwise the values are counted, and the state is computed again.
    static constexpr bool kRemovable = requires(State state, const Value& value) { state.remove(value); };
    static constexpr bool kRepeats = requires { State::kRepeats; };
    static constexpr std::size_t kAhead = 8;                      // rows whose states are prefetched
    static constexpr std::size_t kCached = std::size_t{1} << 18;  // bytes of states that fit the L2 cache

    template <bool removes>
    void update(const Table& rows, std::span<const std::uint32_t> group_of, ExprContext& context) {
        Frame frame(rows, context);
        if constexpr (requires(State state) { state.add_id(kUnbound); }) {
            if (const auto ids = IdColumn::of(*expression_, frame)) {
                add_ids<removes>(*ids, rows.rows, group_of);
                holding_.set(held_bytes(), context.budget);
                return;
            }
        }
        frame.require(looked_at_);
        ValueColumn values(frame);
        std::array<std::uint32_t, kChunk> numbers;
        for (std::size_t from = 0; from < rows.rows; from += kChunk) {
            const std::size_t size = std::min(kChunk, rows.rows - from);
            std::iota(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(size),
                      static_cast<std::uint32_t>(from));
            expression_->evaluate(frame, {numbers.data(), size}, values.data());
            if (distinct_ || counts_) frame.number({values.data(), size});
            const auto groups = group_of.subspan(from, size);
            for (std::size_t k = 0; k < size; ++k) {
                look_ahead(k, groups, [&](std::size_t j) { return values[j].id; });
                add_value<removes>(groups[k], values[k], frame);
            }
            frame.end_chunk();
            holding_.set(held_bytes(), context.budget);
        }
    }

    /// Adds ids without decoding, for states that only need the identity of a term.
    template <bool removes>
    void add_ids(const IdColumn& ids, std::size_t rows, std::span<const std::uint32_t> group_of) {
        for (std::size_t i = 0; i < rows; ++i) {
            look_ahead(i, group_of.first(rows), [&](std::size_t j) { return ids[static_cast<std::uint32_t>(j)]; });
            const std::uint32_t group = group_of[i];
            const TermId id = ids[static_cast<std::uint32_t>(i)];
            if (group >= states_.size()) states_.resize(group + 1);
            if (counts_ && id != kUnbound) {
                lasting_ &= data_ || is_lasting(id);
                const std::int32_t count = counted_.add(group, id, removes ? -1 : 1);
                if (count != (removes ? 0 : 1)) continue;
            }
            if constexpr (removes) {
                states_[group].remove_id(id);
                continue;
            }
            if (counts_) {
                states_[group].add_id(id);
                continue;
            }
            const TermId row[] = {group, id};
            if (!distinct_ || id == kUnbound || seen_.insert(row)) states_[group].add_id(id);
        }
    }

    /// Prefetches what the next rows read, before row `i`.
    template <class Id>
    [[gnu::always_inline]] void look_ahead(std::size_t i, std::span<const std::uint32_t> group_of, Id id) const {
        if (states_.size() * sizeof(State) > kCached && i + kAhead < group_of.size())
            __builtin_prefetch(&states_[group_of[i + kAhead]], 1);
        if (counts_) counted_.look_ahead(i, group_of.size(), [&](std::size_t j) { return group_of[j]; }, id);
    }

    template <bool removes>
    void add_value(std::uint32_t group, const Value& value, Frame& frame) {
        if (group >= states_.size()) states_.resize(group + 1);
        if (counts_) {
            const std::size_t before = states_[group].bytes();
            count_value<removes>(group, value, frame);
            inner_bytes_ += states_[group].bytes() - before;
            return;
        }
        if (distinct_ && !value.error()) {
            const TermId row[] = {group, value.id};
            if (!seen_.insert(row)) return;
        }
        const std::size_t before = states_[group].bytes();
        if constexpr (removes && kRemovable)
            states_[group].remove(value);
        else if constexpr (!removes)
            states_[group].add(value, frame);
        inner_bytes_ += states_[group].bytes() - before;
    }
    template <bool removes>
    void count_value(std::uint32_t group, const Value& value, Frame& frame) {
        State& state = states_[group];
        constexpr int kSign = removes ? -1 : 1;
        const bool error = value.error();
        if (!error) lasting_ &= data_ || is_lasting(value.id);
        const std::int32_t count = error ? 0 : counted_.add(group, value.id, kSign);
        if constexpr (kRemovable) {
            if (!error && count != (removes ? 0 : 1)) return;
            if constexpr (removes)
                state.remove(value);
            else
                state.add(value, frame);
        } else if constexpr (removes) {
            if (error) error_count(group) -= 1;
            const bool goes = error || count <= 0 || (kRepeats && !distinct_);
            if (goes && (error || state.depends_on(value, frame))) make_stale(group);
        } else {
            if (error) error_count(group) += 1;
            if (error || count == 1 || (kRepeats && !distinct_)) state.add(value, frame);
        }
    }
    std::int64_t& error_count(std::uint32_t group) {
        if (errors_.size() <= group) errors_.resize(group + 1);
        return errors_[group];
    }
    void make_stale(std::uint32_t group) {
        if (stale_.size() <= group) stale_.resize(group + 1);
        stale_[group] = 1;
    }

    /// Computes the state of a group from its counted values.
    void collect(std::uint32_t group, Frame& frame) {
        State fresh;
        std::vector<std::pair<TermId, std::int32_t>> values;
        counted_.for_each(group, [&](TermId id, std::int32_t count) { values.emplace_back(id, count); });
        if (frame.context.terms.partial()) {
            std::vector<TermId> ids;
            for (const auto& [id, count] : values) ids.push_back(id);
            frame.context.budget.charge(
                static_cast<std::ptrdiff_t>(frame.context.terms.dictionary().require(ids.data(), ids.size())));
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto [id, count] = values[i];
            const Value value = frame.decode(id);
            for (std::int32_t n = kRepeats && !distinct_ ? count : 1; n > 0; --n) fresh.add(value, frame);
            if (i % kChunk == kChunk - 1) frame.end_chunk();
        }
        if (error_count(group) != 0) fresh.add(Value{}, frame);
        inner_bytes_ += fresh.bytes() - states_[group].bytes();
        states_[group] = std::move(fresh);
    }

    std::size_t held_bytes() const {
        return states_.capacity() * sizeof(State) + seen_.bytes() + counted_.bytes() + stale_.capacity() +
               errors_.capacity() * sizeof(std::int64_t) + inner_bytes_;
    }

    NodePtr expression_;
    std::vector<Slot> looked_at_;
    AggregateOptions options_;
    bool distinct_;
    bool steady_;  // values do not depend on the run
    std::optional<std::uint64_t> variable_;
    bool data_ = false;  // the values are terms of the data, so their ids are the same in every run
    std::vector<State> states_;
    RowSet seen_{2};
    // While rows may be removed, for DISTINCT and for states that cannot lose values.
    bool counts_ = false, lasting_ = true;
    CountedValues counted_;
    std::vector<std::int64_t> errors_;  // by group
    std::vector<std::uint8_t> stale_;   // by group: the state has to be computed again
    std::size_t inner_bytes_ = 0;
    Holding holding_;
};

}  // namespace

std::unique_ptr<Aggregate> Aggregate::compile(const Spec& spec) {
    const std::string& name = spec.at("agg").as_string();
    const Spec* flag = spec.find("distinct");
    const bool distinct = flag != nullptr && flag->as_bool();
    if (name == "count_star") return make_row_count(distinct);
    AggregateOptions options;
    if (const Spec* separator = spec.find("separator")) options.separator = separator->as_string();
    const Spec& expression = spec.at("expr");
    const auto make = [&]<class State>(std::type_identity<State>) -> std::unique_ptr<Aggregate> {
        return std::make_unique<ValueAggregate<State>>(expression, distinct, std::move(options));
    };
    if (name == "count") return make(std::type_identity<CountState>{});
    if (name == "sum") return make(std::type_identity<SumState>{});
    if (name == "avg") return make(std::type_identity<AverageState>{});
    if (name == "min") return make(std::type_identity<MinState>{});
    if (name == "max") return make(std::type_identity<MaxState>{});
    if (name == "sample") return make(std::type_identity<SampleState>{});
    if (name == "group_concat") return make(std::type_identity<GroupConcatState>{});
    throw Error("plan: unknown aggregate '" + name + "'");
}

}  // namespace penstock
