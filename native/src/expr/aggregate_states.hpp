// The states of aggregates for one group (SPARQL 1.1 §18.5.1). Each state has add() for the value of a row, errors
// included, result() for the group, and bytes(), the memory outside the object. Results do not depend on row order.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "expr/exact_sum.hpp"
#include "expr/frame.hpp"

namespace penstock::expr {

struct AggregateOptions {
    std::string separator = " ";  // GROUP_CONCAT
};

class CountState {
public:
    void add(const Value& value, Frame&) { count_ += value.error() ? 0 : 1; }
    void add_id(TermId id) { count_ += id == kUnbound ? 0 : 1; }
    void remove(const Value& value) { count_ -= value.error() ? 0 : 1; }
    void remove_id(TermId id) { count_ -= id == kUnbound ? 0 : 1; }
    Value result(Frame&, const AggregateOptions&) const { return Value::integer(static_cast<Int128>(count_)); }
    std::size_t bytes() const { return 0; }

private:
    std::uint64_t count_ = 0;
};

/// Sum in the widest type of its terms. An error, or a value that is not a number, makes the result an error.
class SumState {
public:
    void add(const Value& value, Frame&) { update(value, 1); }
    void remove(const Value& value) { update(value, -1); }
    Value result(Frame&, const AggregateOptions&) const { return errors_ != 0 ? Value{} : sum(); }
    std::size_t bytes() const { return reals_ ? sizeof(ExactDoubleSum) + reals_->bytes() : 0; }

protected:
    void update(const Value& value, int sign);
    Value sum() const;
    std::uint64_t count() const;
    ValueType widest() const;
    ExactDecimalSum exact_;
    std::unique_ptr<ExactDoubleSum> reals_;
    std::array<std::uint64_t, 4> counts_{};  // of values by type, from Integer to Double; modulo 2^64
    std::uint64_t errors_ = 0;
};

class AverageState : public SumState {
public:
    Value result(Frame&, const AggregateOptions&) const;
};

/// The first (sign = 1) or last (sign = -1) value in the order of ORDER BY. An error among the values, or the absence
/// of values, makes the result an error.
template <int sign>
class ExtremeState {
public:
    void add(const Value& value, Frame& frame);
    /// Whether the result can change if all rows with the value are removed.
    bool depends_on(const Value& value, Frame& frame);
    Value result(Frame&, const AggregateOptions&) const;
    std::size_t bytes() const { return 0; }

private:
    int compare(const Value& value, Frame& frame);
    Value best_;
    bool error_ = false;
};
using MinState = ExtremeState<1>;
using MaxState = ExtremeState<-1>;

/// The smallest value, so that the choice does not depend on the order of rows. Errors are skipped.
class SampleState {
public:
    void add(const Value& value, Frame& frame) {
        if (!value.error()) least_.add(value, frame);
    }
    bool depends_on(const Value& value, Frame& frame) { return least_.depends_on(value, frame); }
    Value result(Frame& frame, const AggregateOptions& options) const { return least_.result(frame, options); }
    std::size_t bytes() const { return 0; }

private:
    MinState least_;
};

/// Texts of IRIs and literals, joined in the order of ORDER BY. An error or a blank node makes the result an error.
class GroupConcatState {
public:
    static constexpr bool kRepeats = true;  // equal values count
    void add(const Value& value, Frame& frame);
    bool depends_on(const Value&, Frame&) { return true; }
    Value result(Frame& frame, const AggregateOptions& options) const;
    std::size_t bytes() const { return terms_.capacity() * sizeof(TermId); }

private:
    std::vector<TermId> terms_;
    bool error_ = false;
};

}  // namespace penstock::expr
