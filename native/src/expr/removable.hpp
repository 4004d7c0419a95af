// Aggregates from which rows can be removed.
#pragma once

#include "expr/expression.hpp"

namespace penstock {

/// An aggregate whose state can remain from run to run (ADR 78).
class RemovableAggregate : public Aggregate {
public:
    /// Whether rows can be removed: the state holds what remains after a removal, and the values of the expression do
    /// not depend on the run.
    virtual bool removable() const = 0;
    /// Removes rows that were added, in this run or in an earlier one, or that will be added in this run.
    virtual void remove(const Table& rows, std::span<const std::uint32_t> group_of, ExprContext& context) = 0;
    /// Charges the state of an earlier run to the budget of this one.
    virtual void resume(ExprContext& context) = 0;
    virtual std::size_t bytes() const = 0;
    /// out[i] = result of group groups[i].
    virtual void results(ExprContext& context, std::span<const std::uint32_t> groups, Column& out) = 0;
};

}  // namespace penstock
