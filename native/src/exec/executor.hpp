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

/// What one operator did in one run, for EXPLAIN.
struct OperatorProfile {
    std::uint32_t id = 0;     // the node's "id" in the plan
    std::uint64_t rows = 0;   // produced, summed over its calls
    std::uint64_t nanos = 0;  // its own time, its inputs' left out
};

struct RunInput {
    const Table* seed = nullptr;             // parameter table; never null (unit table for one-shot queries)
    std::span<const Source* const> sources;  // by the plan's source index; 0 is the stored graph
    const LabelTable* labels = nullptr;
    ExprContext* expressions = nullptr;               // its exists/timestamp are set by the executor
    std::vector<OperatorProfile>* profile = nullptr;  // filled where not null
    exec::Forker* forker = nullptr;                   // where steps can be run on nodes
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
