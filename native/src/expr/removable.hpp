// Aggregates from which rows can be removed.
#pragma once

#include <functional>

#include "expr/expression.hpp"

namespace penstock {

/// Whether a term has this id in every run: it is unbound or inline.
inline bool is_lasting(TermId id) {
    return id == kUnbound || (tag_of(id) >= Tag::Integer && tag_of(id) <= Tag::String);
}

/// An aggregate whose state can remain from run to run (ADR 78).
class RemovableAggregate : public Aggregate {
public:
    /// Whether rows can be removed. They can if the values of the expression do not depend on the run. `computes`:
    /// returns whether the values of a slot are computed.
    virtual bool removable(const std::function<bool(Slot)>& computes) = 0;
    /// Sets whether rows can be removed from the following state. Must be called after reset().
    virtual void track(bool /*tracks*/) {}
    /// Whether the values added so far have the same ids in every run. If not, the state cannot be kept.
    virtual bool lasting() const { return true; }
    /// Removes rows that were added, in this run or in an earlier one, or that will be added in this run.
    virtual void remove(const Table& rows, std::span<const std::uint32_t> group_of, std::span<const Slot> hidden,
                        ExprContext& context) = 0;
    /// Charges the state of an earlier run to the budget of the present run.
    virtual void resume(ExprContext& context) = 0;
    virtual std::size_t bytes() const = 0;
    /// out[i] = result of group groups[i].
    virtual void results(ExprContext& context, std::span<const std::uint32_t> groups, Column& out) = 0;
};

}  // namespace penstock
