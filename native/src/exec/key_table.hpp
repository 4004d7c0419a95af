// Distinct rows, numbered: shared by DISTINCT, GROUP BY, LIMIT per member, CONSTRUCT and the visited sets of paths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/charge.hpp"
#include "exec/table.hpp"
#include "large_pages.hpp"

namespace penstock::exec {

/// Rows of a fixed number of columns without duplicates, numbered from 0 in order of first appearance. Cells are
/// compared as plain values; unbound equals unbound.
class KeyTable {
public:
    /// Clears the table and sets its number of columns.
    void reset(std::size_t columns);
    /// ids[i] = number of row i; a new row gets the next number. `keys` are columns with at least `rows` values. Throws
    /// LimitError if memory or numbers are exhausted.
    void assign(std::span<const TermId* const> keys, std::size_t rows, std::uint32_t* ids, Budget& budget);
    /// As assign() for one row.
    std::uint32_t assign_one(std::span<const TermId> key, Budget& budget);
    /// Number of a row, or kNone.
    std::uint32_t find_one(std::span<const TermId> key) const;
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;

    std::size_t size() const { return size_; }
    const Column& column(std::size_t i) const { return columns_[i]; }
    /// Clears the table, releases the charge and frees large buffers.
    void release(Budget& budget);

private:
    void reserve(std::size_t rows, Budget& budget);
    void rehash(std::size_t buckets);
    [[gnu::always_inline]] void prefetch_row(std::uint64_t hash) const;
    std::uint32_t insert(std::uint64_t hash, std::span<const TermId* const> keys, std::size_t row);

    struct Bucket {
        std::uint32_t id = kNone;
        std::uint32_t tag = 0;
    };
    std::vector<Column> columns_;
    std::vector<std::uint64_t> hashes_;
    std::vector<Bucket, LargePages<Bucket>> buckets_;
    std::vector<std::uint64_t> scratch_;
    std::size_t size_ = 0;
    Charge charge_;
};

}  // namespace penstock::exec
