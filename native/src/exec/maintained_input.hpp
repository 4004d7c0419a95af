// The input of an operator that keeps its state from run to run: if only windows have changed since the last run, the
// operator gets the change of its input in place of the input itself (ADR 78).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/changed_source.hpp"
#include "exec/delta_plan.hpp"
#include "exec/operator.hpp"

namespace penstock::exec {

/// Whether a term has this id in every run: it is unbound or inline.
inline bool is_lasting(TermId id) {
    return id == kUnbound || (tag_of(id) >= Tag::Integer && tag_of(id) <= Tag::String);
}

/// A maintained operator calls, in each run, first can_update(). If that returns true, it calls run_changes(), else it
/// evaluates its whole input and, if wants_state(), may keep its state. If its state holds the run's answer at the end,
/// it calls keep(). An exception between these calls loses the state.
class MaintainedInput {
public:
    /// `input`: the node of the input, whose rows have `slots`. `first`: number of the first of its operators; the last
    /// one was compiled just before.
    MaintainedInput(const Spec& input, const std::vector<Slot>& slots, std::size_t first, Compiler& compiler);
    ~MaintainedInput();

    /// Whether the operator should track what an update needs in this run, which evaluates the whole input.
    bool wants_state(const Run& run);
    /// Whether the state that was retained can be updated from the changes since then, at less cost than a new
    /// evaluation.
    bool can_update(Run& run);
    /// Pushes the changes to `out`, in tables of rows to add (`sign` = 1) or to remove (-1).
    void run_changes(Run& run, Sink& out, int& sign);
    /// The whole input was evaluated. Call before keep().
    void evaluated(const Run& run);
    /// The state corresponds to the run's sources from now on.
    void keep(const Run& run);
    /// Whether a slot's values are computed. Ids of computed terms other than inline ones are not valid in later runs.
    bool computes(Slot slot) const;

private:
    struct Term {
        OperatorPtr node, before;
        std::vector<std::size_t> windows;
    };
    struct Window {
        std::size_t source;
        std::uint64_t seen = 0;                // version that the retained state corresponds to
        const EdgeChanges* changes = nullptr;  // since then; null: unchanged
        EdgeList added, removed, both;
        PreviousSource before;
    };
    bool find_changes(const Run& run);
    void pass(Run& run, Operator& node, Sink& out, EdgeList Window::* changed);
    bool changed(const Term& term) const;

    std::size_t first_, end_;  // numbers of the input's operators
    DeltaPlan plan_;
    std::vector<Term> terms_;
    std::vector<Window> windows_;
    // Of the retained state.
    bool retained_ = false;
    std::vector<Column> seed_;
    std::uint64_t cost_ = 0;    // of the last evaluation of the whole input: rows of all its operators
    std::uint32_t unused_ = 0;  // consecutive states that could not be updated
    std::uint32_t pause_ = 0;   // evaluations until the next state is retained
    std::uint64_t runs_ = 0;
    std::vector<const Source*> sources_;
};

}  // namespace penstock::exec
