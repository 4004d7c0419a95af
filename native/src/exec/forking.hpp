// Fork-join (Wukong, OSDI'16 §5; ADR 18): steps of a plan that run where the lists lie that they read. The rows go
// there, and come back extended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/budget.hpp"
#include "exec/table.hpp"

namespace penstock::exec {

/// The nodes that steps can be run on. One thread at a time.
class Forker {
public:
    virtual ~Forker() = default;
    /// Nodes are numbered from 0.
    virtual std::size_t nodes() const = 0;
    virtual std::size_t node_of(TermId vertex) const = 0;
    /// Runs the steps of the plan's node `fork` over rows[n] at node n, for those that have rows, all at the same time.
    /// The first column numbers the rows, ascending. Returns for each node a table with that column and one for
    /// each slot that the steps bind; an empty table where there were no rows. Throws what the data plane throws, or
    /// LimitError by the budget.
    virtual std::vector<Table> run(std::uint32_t fork, std::vector<Table> rows, const Budget& budget) = 0;
};

}  // namespace penstock::exec
