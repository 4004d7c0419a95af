// Fork-join (Wukong, OSDI'16 §5; ADR 18): steps of a plan run on the nodes that own the lists that these steps read.
// Rows are sent to the nodes, which return the extended rows.
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
    /// Runs the steps of the plan's node `fork`. Node n runs the steps over rows[n]. All nodes that have rows run
    /// concurrently. The first column contains ascending numbers of the rows. Returns a table for each node, with this
    /// first column and one column for each slot that the steps bind. A node without rows gets an empty table. Throws
    /// errors of the data plane, and LimitError if the budget is exceeded.
    virtual std::vector<Table> run(std::uint32_t fork, std::vector<Table> rows, const Budget& budget) = 0;
};

}  // namespace penstock::exec
