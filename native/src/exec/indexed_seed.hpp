// The seed of a query set: a table of parameters that stays the same for many runs, with indexes of its rows (ADR 85).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/table.hpp"
#include "large_pages.hpp"
#include "source.hpp"

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
    /// Differs from the number of every other seed. Not 0.
    std::uint64_t number() const { return number_; }
    std::size_t bytes() const;
    /// Starts a run of a plan with these slots for the columns. Throws Error if their number is wrong.
    void begin_run(const std::vector<Slot>& slots);
    /// Whether it is faster to look up the vertices of this number of edges in the index than to process all rows.
    /// False in the first run, because the construction of an index costs more than a single run gains.
    bool pays(std::uint64_t edges) const;
    /// Sets `rows` to the rows whose value in a column is one of `values`, each once, ascending.
    void rows_with(std::size_t column, std::span<const TermId> values, std::vector<std::uint32_t>& rows);

    /// Joins a column with the keys of pairs (key, value). Sets `rows` to the rows whose value is one of `keys`, each
    /// once, ascending. Sets `found` to the pairs (index in `rows`, value) of all matches, ascending by index, and
    /// those of a row in the order of `keys`. Returns false, without a result, if there are more matches than both rows
    /// and keys.
    bool join(std::size_t column, std::span<const TermId> keys, std::span<const TermId> values,
              std::vector<std::uint32_t>& rows, Matches& found);
    /// The size of the scratch memory of join().
    std::size_t join_bytes() const;

private:
    template <class T>
    using LargeVector = std::vector<T, LargePages<T>>;
    /// A row and its value, next to each other: each is read at a random place.
    struct [[gnu::packed]] Entry {
        TermId value;
        std::uint32_t row;
    };
    /// Entries in the order of the hash of their value. `starts[h]` is the position of the first one whose hash is `h`.
    struct Index {
        LargeVector<std::uint32_t> starts;
        LargeVector<Entry> entries;
    };
    /// A match of join(): the number of the key, and the row.
    struct Match {
        std::uint32_t key, row;
    };
    const Index& index(std::size_t column);
    template <class Visit>
    bool look_up(std::size_t column, std::span<const TermId> values, Visit visit);
    void mark(std::uint32_t row);
    void take_marked(std::vector<std::uint32_t>& rows);

    Table table_;
    std::vector<Index> indexes_;         // by column; empty: not built
    std::vector<std::uint64_t> marked_;  // a bit for each row; all 0 between calls
    std::uint64_t runs_ = 0;
    const std::uint64_t number_;
    // Scratch of join().
    std::vector<Match> matches_;
    std::vector<std::uint32_t> before_;  // by word of marked_: the number of marked rows in earlier words
    std::vector<std::uint32_t> ends_;    // by index in the result's `rows`: the end of its matches so far
};

}  // namespace penstock::exec
