// The input of an operator that keeps its state from run to run: if the changes of the sources since the last run are
// known, the operator gets the change of its input instead of the whole input (ADR 78, 81).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/changed_source.hpp"
#include "exec/delta_plan.hpp"
#include "exec/maintenance.hpp"
#include "exec/operator.hpp"
#include "expr/removable.hpp"

namespace penstock::exec {

/// In each run, a maintained operator first calls can_update(). If the result is true, the operator calls
/// run_changes(). Otherwise, it evaluates its whole input, and if wants_state() returns true, it can keep its state. If
/// the state contains the answer of the run at the end, the operator calls keep(). After an exception between these
/// calls, the state is lost.
class MaintainedInput {
public:
    /// `id`: of the operator's node. `input`: the node of the input, whose rows have `slots`. `first`: the number of
    /// the first operator of the input. The last operator of the input must have just been compiled. `lasting`: whether
    /// the operator can keep state at all.
    MaintainedInput(std::uint32_t id, const Spec& input, const std::vector<Slot>& slots, std::size_t first,
                    Compiler& compiler, bool lasting = true);
    ~MaintainedInput();

    /// Whether the operator should build the state for later updates in this run. The run evaluates the whole input.
    bool wants_state(const Run& run);
    /// Whether the retained state can be updated from the changes since it was retained, at less cost than a new
    /// evaluation.
    bool can_update(Run& run);
    /// States that this run cannot use the state. If wants_state() is not called, the next run cannot use the state
    /// either.
    void fall_back(Outcome reason) { outcome_ = next_ = reason; }
    /// States that the next run will have no state.
    void drop(Outcome reason) { next_ = reason; }
    /// As drop(). If this happens again and again, further states are retained less often.
    void give_up(Outcome reason) {
        drop(reason);
        lose();
    }
    /// States that the run updates the state from `rows` changed rows, which another operator gives.
    void updated_from(std::uint64_t rows) {
        outcome_ = Outcome::Updated;
        changed_rows_ = rows;
    }
    /// How this run was evaluated.
    Outcome outcome() const { return outcome_; }
    /// States that the run is a complete evaluation, for which can_update() is not called.
    void begin() { outcome_ = next_; }
    /// Must be called at the end of the run. `state_bytes`: the size of the retained state.
    void report(Run& run, std::size_t state_bytes);
    /// Pushes the changes to `out`, in tables of rows to add (`sign` = 1) or to remove (-1).
    void run_changes(Run& run, Sink& out, int& sign);
    /// States that the whole input was evaluated. Must be called before keep().
    void evaluated(const Run& run);
    /// States that the state corresponds to the run's sources from now on.
    void keep(const Run& run);
    /// Whether a slot's values are computed. Ids of computed terms other than inline ones are not valid in later runs.
    bool computes(Slot slot) const;

private:
    struct Term {
        OperatorPtr node, before;
        std::vector<std::size_t> unions;
        DeltaTerm::Crossing crossing;
    };
    /// A window, or the stored graph.
    struct Part {
        std::size_t source;
        std::uint64_t seen = 0;                // version of the window that the retained state corresponds to
        const EdgeChanges* changes = nullptr;  // since then; null: unchanged
        EdgeList added, removed;
        PreviousSource previous;         // of a window
        const Source* before = nullptr;  // what the part was then
    };
    struct Union {
        std::vector<Part*> parts;
        bool changed = false;
        EdgeList added, removed, both;
        std::vector<LabelledEdge> edges_added, edges_removed;  // of several parts
    };
    static std::uint64_t rows_of(const Run& run, std::size_t first, std::size_t end);
    bool reads_stored() const { return !parts_.empty() && parts_.front().source == 0; }
    bool same_seed(const Run& run) const;
    void keep_seed(const Run& run);
    bool find_changes(const Run& run);
    bool find_window_changes(const Run& run, Part& window);
    bool find_stored_changes(const Run& run, Part& stored, std::size_t limit);
    void prepare(const Run& run);
    void combine(const Run& run, std::size_t number);
    void compare(const Union& set, std::vector<LabelledEdge>& edges, std::vector<LabelledEdge>& added,
                 std::vector<LabelledEdge>& removed) const;
    void pass(Run& run, Operator& node, Sink& out, EdgeList Union::* changed);
    void lose();
    bool changed(const Term& term) const;

    const std::uint32_t id_;
    std::size_t first_, end_;  // numbers of the input's operators
    std::size_t terms_end_;    // the numbers of the terms' operators follow
    DeltaPlan plan_;
    std::vector<Term> terms_;
    std::vector<Part> parts_;  // ascending by source
    std::vector<Union> unions_;
    // Of the retained state.
    bool retained_ = false;
    std::uint64_t seed_number_ = 0;  // of the indexed seed; 0: `seed_` has the columns of the seed
    std::vector<Column> seed_;
    std::shared_ptr<SnapshotSource::Retained> stored_;  // the stored graph that it corresponds to
    std::shared_ptr<const Source> stored_before_;       // the same, during an update
    EdgeChanges stored_changes_;
    std::uint64_t cost_ = 0;    // rows of all operators of the input in the last evaluation of the whole input
    std::uint32_t unused_ = 0;  // consecutive states that could not be updated
    std::uint32_t pause_ = 0;   // evaluations until the next state is retained
    bool updates_ = false;
    std::uint64_t runs_ = 0;
    // For EXPLAIN and metrics.
    Outcome outcome_ = Outcome::NoState, next_ = Outcome::NoState;  // of this run; of the next one if it has no state
    std::uint64_t changed_rows_ = 0;
    std::size_t counted_bytes_ = 0;  // in totals_
    std::shared_ptr<MaintenanceTotals> totals_;
    std::vector<const Source*> sources_;
};

}  // namespace penstock::exec
