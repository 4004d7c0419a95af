// Distinct rows, numbered: what DISTINCT, GROUP BY, LIMIT per member, CONSTRUCT and paths' visited sets have in common.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/charge.hpp"
#include "exec/table.hpp"

namespace penstock::exec {

/// Rows of a fixed number of columns without duplicates, numbered from 0 in order of first appearance. Cells are
/// compared as plain values, unbound ones too.
class KeyTable {
public:
    /// Empties it; it holds rows of that many columns from now on.
    void reset(std::size_t columns);
    /// ids[i] = number of row i; a row seen for the first time gets the next number. `keys` are columns with at least
    /// `rows` values. Throws LimitError where memory or numbers run out.
    void assign(std::span<const TermId* const> keys, std::size_t rows, std::uint32_t* ids, Budget& budget);
    /// As assign for one row.
    std::uint32_t assign_one(std::span<const TermId> key, Budget& budget);
    /// Number of a row, or kNone.
    std::uint32_t find_one(std::span<const TermId> key) const;
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;

    std::size_t size() const { return size_; }
    const Column& column(std::size_t i) const { return columns_[i]; }
    /// Empties it, gives the charge back and frees what is large.
    void release(Budget& budget);

private:
    void reserve(std::size_t rows, Budget& budget);
    void rehash(std::size_t buckets);
    std::uint32_t insert(std::uint64_t hash, std::span<const TermId* const> keys, std::size_t row);

    struct Bucket {
        std::uint32_t id = kNone;
        std::uint32_t tag = 0;
    };
    std::vector<Column> columns_;
    std::vector<std::uint64_t> hashes_;
    std::vector<Bucket> buckets_;
    std::vector<std::uint64_t> scratch_;
    std::size_t size_ = 0;
    Charge charge_;
};

}  // namespace penstock::exec
