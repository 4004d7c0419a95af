// Sets for DISTINCT inside aggregates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rdf/term.hpp"

namespace penstock::expr {

/// Distinct rows of ids, all of one width. The group number is part of a row.
class RowSet {
public:
    explicit RowSet(std::size_t width) : width_(width) {}

    /// False if the row is already present.
    bool insert(std::span<const TermId> row);
    std::size_t bytes() const { return rows_.capacity() * sizeof(TermId) + slots_.capacity() * sizeof(std::uint32_t); }

private:
    static constexpr std::size_t kFirstSize = 64;
    static std::uint64_t hash(std::span<const TermId> row);
    void grow();
    std::size_t width_;
    std::vector<TermId> rows_;
    std::vector<std::uint32_t> slots_;  // number of a row + 1; 0 = free
    std::size_t used_ = 0;
};

}  // namespace penstock::expr
