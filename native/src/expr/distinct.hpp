// Sets for DISTINCT inside aggregates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rdf/term.hpp"

namespace penstock::expr {

/// A hash of a row of ids.
std::uint64_t hash_of(std::span<const TermId> row);

/// Distinct rows of ids, all of one width. The group number is part of a row.
class RowSet {
public:
    explicit RowSet(std::size_t width) : width_(width) {}

    /// False if the row is already present.
    bool insert(std::span<const TermId> row);
    std::size_t bytes() const { return rows_.capacity() * sizeof(TermId) + slots_.capacity() * sizeof(std::uint32_t); }

private:
    static constexpr std::size_t kFirstSize = 64;
    void grow();
    std::size_t width_;
    std::vector<TermId> rows_;
    std::vector<std::uint32_t> slots_;  // number of a row + 1; 0 = free
    std::size_t used_ = 0;
};

/// How often each row occurs, while rows come and go (ADR 78).
class RowCounts {
public:
    explicit RowCounts(std::size_t width) : width_(width) {}

    /// Adds `by` (1 or -1) and returns the count, which may be negative until all changes of a run have been made.
    std::int32_t add(std::span<const TermId> row, std::int32_t by);
    std::size_t bytes() const {
        return rows_.capacity() * sizeof(TermId) + slots_.capacity() * sizeof(std::uint32_t) +
               counts_.capacity() * sizeof(std::int32_t);
    }

private:
    static constexpr std::size_t kFirstSize = 64;
    std::span<const TermId> row(std::size_t number) const { return {rows_.data() + number * width_, width_}; }
    void grow();
    std::size_t width_;
    std::vector<TermId> rows_;
    std::vector<std::int32_t> counts_;  // by row
    std::vector<std::uint32_t> slots_;  // number of a row + 1; 0 = free
    std::size_t absent_ = 0;            // rows with count 0
};

}  // namespace penstock::expr
