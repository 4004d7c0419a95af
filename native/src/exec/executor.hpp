// Columnar execution of physical plans (ADR 8). docs/plan-format.md describes the format of plans.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/budget.hpp"
#include "exec/forking.hpp"
#include "exec/indexed_seed.hpp"
#include "exec/maintenance.hpp"
#include "exec/table.hpp"
#include "expr/expression.hpp"
#include "rdf/dictionary.hpp"
#include "source.hpp"
#include "spec.hpp"
#include "store/labels.hpp"

namespace penstock {

/// Figures of a plan's operators, for EXPLAIN: the rows of the last run, and the times of the last timed run. Only one
/// run at a time can use a profile. The memory is reused from run to run. A run that throws leaves the profile
/// unchanged.
struct Profile {
    /// A figure of an operator. `id`: the id of the node in the plan. A node that is compiled for several row schemas
    /// has several figures, which the reader must add up.
    struct Figure {
        std::uint32_t id = 0;
        std::uint64_t value = 0;
    };
    bool timed = false;         // requests times from the next run; a timed run does not reuse a memoized answer
    bool reused = false;        // the last run reused the memoized answer: no look-up had changed, and no operator ran
    std::vector<Figure> rows;   // produced, summed over the operator's calls
    std::vector<Figure> nanos;  // the operator's own time, without its inputs
    std::vector<exec::MaintainedFigure> maintained;  // of the last run
};

/// Asks for the change of an answer. Only plans with `changes` support this.
struct AnswerChange {
    std::uint64_t from = 0;  // the answer that the caller holds: `id` of an earlier run; 0: none
    std::uint64_t id = 0;    // set by the run: identifies its answer; 0: its change cannot be found later
    bool known = false;      // set by the run: its rows are the change since `from`, not the answer
    std::size_t added = 0;   // how many of these rows were added; the following rows were removed
};

struct RunInput {
    const Table* seed = nullptr;             // parameter table; never null (unit table for one-shot queries)
    std::span<const Source* const> sources;  // by the plan's source index; 0 is the stored graph
    const LabelTable* labels = nullptr;
    ExprContext* expressions = nullptr;  // the executor sets its exists and timestamp
    Profile* profile = nullptr;          // filled if not null
    exec::Forker* forker = nullptr;      // not null if nodes can run steps
    AnswerChange* change = nullptr;      // not null if the caller accepts the change instead of the answer
    std::shared_ptr<exec::MaintenanceTotals> totals = nullptr;  // null: not counted
    exec::IndexedSeed* indexed_seed = nullptr;                  // if not null, it has the table `seed`
};

/// A compiled plan: immutable and thread-safe.
class Plan {
public:
    explicit Plan(const Spec& spec);  // throws Error if the spec is malformed
    ~Plan();
    Answer run(const RunInput& input) const;
    std::size_t slots() const;
    const std::vector<Slot>& seed() const;  // slots of the seed table's columns

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
