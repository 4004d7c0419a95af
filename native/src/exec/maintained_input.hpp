// The input of an operator that keeps its state from run to run: if the changes of its sources since the
// last run are known, the operator gets the change of its input in place of the input itself (ADR 78, 81).
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

/// A maintained operator calls, in each run, first can_update(). If that returns true, it calls run_changes(), else it
/// evaluates its whole input and, if wants_state(), may keep its state. If its state holds the run's answer at the end,
/// it calls keep(). An exception between these calls loses the state.
class MaintainedInput {
public:
    /// `id`: of the operator's node. `input`: the node of the input, whose rows have `slots`. `first`: number of the
    /// first of its operators; the last one was compiled just before. `lasting`: whether the operator may keep state at
    /// all.
    MaintainedInput(std::uint32_t id, const Spec& input, const std::vector<Slot>& slots, std::size_t first,
                    Compiler& compiler, bool lasting = true);
    ~MaintainedInput();

    /// Whether the operator should track what an update needs in this run, which evaluates the whole input.
    bool wants_state(const Run& run);
    /// Whether the state that was retained can be updated from the changes since then, at less cost than a new
    /// evaluation.
    bool can_update(Run& run);
    /// This run and, if wants_state() is not called, the next one cannot use the state.
    void fall_back(Outcome reason) { outcome_ = next_ = reason; }
    /// The next run will have no state.
    void drop(Outcome reason) { next_ = reason; }
    /// The same. If this recurs, further states are retained less often.
    void give_up(Outcome reason) {
        drop(reason);
        lose();
    }
    /// The run updates the state from `rows` changed rows that another operator gives.
    void updated_from(std::uint64_t rows) {
        outcome_ = Outcome::Updated;
        changed_rows_ = rows;
    }
    /// How this run was evaluated.
    Outcome outcome() const { return outcome_; }
    /// The run is a complete evaluation that does not ask for an update.
    void begin() { outcome_ = next_; }
    /// Call at the end of the run. `state_bytes`: of the retained state.
    void report(Run& run, std::size_t state_bytes);
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
    std::size_t terms_end_;    // those of the terms follow
    DeltaPlan plan_;
    std::vector<Term> terms_;
    std::vector<Part> parts_;  // ascending by source
    std::vector<Union> unions_;
    // Of the retained state.
    bool retained_ = false;
    std::vector<Column> seed_;
    std::shared_ptr<SnapshotSource::Retained> stored_;  // the stored graph that it corresponds to
    std::shared_ptr<const Source> stored_before_;       // the same, during an update
    EdgeChanges stored_changes_;
    std::uint64_t cost_ = 0;    // of the last evaluation of the whole input: rows of all its operators
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
