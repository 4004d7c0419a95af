// Columnar execution of physical plans (ADR 8); the plan's format is docs/plan-format.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/budget.hpp"
#include "exec/forking.hpp"
#include "exec/table.hpp"
#include "expr/expression.hpp"
#include "rdf/dictionary.hpp"
#include "source.hpp"
#include "spec.hpp"
#include "store/labels.hpp"

namespace penstock {

/// What the operators of a plan did, for EXPLAIN: rows of the last run, times of the last timed one. It belongs to one
/// caller, which hands it to one run at a time; its memory stays from run to run. A run that throws leaves it as it is.
struct Profile {
    /// A figure of an operator; `id` is the node's in the plan. A node that is compiled for several shapes of rows has
    /// several: their sum counts.
    struct Figure {
        std::uint32_t id = 0;
        std::uint64_t value = 0;
    };
    bool timed = false;         // asks the next run for times; a timed run does not return a remembered answer
    bool recalled = false;      // the last run: every look-up found what it had found before, and no operator ran
    std::vector<Figure> rows;   // produced, summed over the operator's calls
    std::vector<Figure> nanos;  // the operator's own time, its inputs' left out
};

struct RunInput {
    const Table* seed = nullptr;             // parameter table; never null (unit table for one-shot queries)
    std::span<const Source* const> sources;  // by the plan's source index; 0 is the stored graph
    const LabelTable* labels = nullptr;
    ExprContext* expressions = nullptr;  // its exists/timestamp are set by the executor
    Profile* profile = nullptr;          // filled where not null
    exec::Forker* forker = nullptr;      // where steps can be run on nodes
};

/// A compiled plan: immutable, shareable between threads; run() keeps its state in locals.
class Plan {
public:
    explicit Plan(const Spec& spec);  // throws Error where the spec is malformed
    ~Plan();
    Answer run(const RunInput& input) const;
    std::size_t slots() const;
    const std::vector<Slot>& seed() const;  // slots of the seed table's columns

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
