// The seed of a query set: a table of parameters that stays the same for many runs, with indexes of its rows (ADR 85).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/table.hpp"

namespace penstock::exec {

/// One run at a time may use it.
class IndexedSeed {
public:
    /// For the whole process: seeds with at least this number of rows are indexed. 0: all seeds are indexed, for every
    /// look-up and from the first run on. Relaxed, because a change needs to affect only runs that start later.
    static inline std::atomic<std::uint64_t> from = 4096;

    /// DataError if there are more than 2^32 - 2 rows.
    explicit IndexedSeed(Table table);

    const Table& table() const { return table_; }
    std::size_t bytes() const;
    /// Starts a run of a plan with these slots for the columns. Throws Error if their number is wrong.
    void begin_run(const std::vector<Slot>& slots);
    /// Whether it is faster to look up the vertices of this number of edges in the index than to process all rows.
    /// False in the first run, because the construction of an index costs more than a single run gains.
    bool pays(std::uint64_t edges) const;
    /// Sets `rows` to the rows whose value in a column is one of `values`, each once, ascending.
    void rows_with(std::size_t column, std::span<const TermId> values, std::vector<std::uint32_t>& rows);

private:
    /// Chains of rows by the hash of their value.
    struct Index {
        std::vector<std::uint32_t> heads, next;
    };
    const Index& index(std::size_t column);

    Table table_;
    std::vector<Index> indexes_;         // by column; empty: not built
    std::vector<std::uint64_t> marked_;  // a bit for each row; all 0 between calls
    std::uint64_t runs_ = 0;
};

}  // namespace penstock::exec
