// Fork-join (Wukong, OSDI'16 §5; ADR 18): steps of a plan run on the nodes that own the lists they read. Rows are sent
// there and return extended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/budget.hpp"
#include "exec/table.hpp"

namespace penstock::exec {

/// The nodes that can run steps. Not thread-safe.
class Forker {
public:
    virtual ~Forker() = default;
    /// Nodes are numbered from 0.
    virtual std::size_t nodes() const = 0;
    virtual std::size_t node_of(TermId vertex) const = 0;
    /// Runs the steps of the plan's node `fork` over rows[n] on node n, concurrently on all nodes that have rows. The
    /// first column numbers the rows, ascending. Returns a table per node with that column and one column for each slot
    /// that the steps bind; an empty table for a node without rows. Throws errors of the data plane, and LimitError by
    /// the budget.
    virtual std::vector<Table> run(std::uint32_t fork, std::vector<Table> rows, const Budget& budget) = 0;
};

}  // namespace penstock::exec
