// Sets for DISTINCT inside aggregates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "large_pages.hpp"
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

/// How often each row occurs, while rows are added and removed (ADR 78).
class RowCounts {
public:
    explicit RowCounts(std::size_t width) : stride_(width + 1) {}

    /// Adds `by` (1 or -1) to the count of the row and returns the count. The count can be negative until all changes
    /// of a run are made. `hash`: hash_of(row).
    std::int32_t add(std::span<const TermId> row, std::uint64_t hash, std::int32_t by);
    /// Prefetches the memory that the next calls of add() read. Must be called before call number `i` of the calls with
    /// these hashes.
    [[gnu::always_inline]] void look_ahead(std::span<const std::uint64_t> hashes, std::size_t i) const {
        if (size_ < kCached) return;
        if (i + kAhead < hashes.size()) __builtin_prefetch(&slots_[place_of(hashes[i + kAhead])]);
        if (i + kAhead / 2 < hashes.size()) prefetch_row(hashes[i + kAhead / 2]);
    }
    std::size_t bytes() const { return cells_.capacity() * sizeof(TermId) + slots_.capacity() * sizeof(Slot); }

private:
    struct Slot {
        std::uint32_t number = 0;  // of a row + 1; 0 = free
        std::uint32_t tag = 0;     // of the row's hash, so that most other rows are not read
    };
    static constexpr std::size_t kFirstSize = 64;
    static constexpr std::size_t kAhead = 16;                     // calls whose lines are prefetched
    static constexpr std::size_t kCached = std::size_t{1} << 13;  // rows of a table that fits the L2 cache
    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
    std::size_t place_of(std::uint64_t hash) const { return hash & (slots_.size() - 1); }
    std::size_t after(std::size_t place) const { return (place + 1) & (slots_.size() - 1); }
    std::span<const TermId> row(std::size_t number) const { return {cells_.data() + number * stride_, stride_ - 1}; }
    TermId& count(std::size_t number) { return cells_[(number + 1) * stride_ - 1]; }
    [[gnu::always_inline]] void prefetch_row(std::uint64_t hash) const {
        const Slot& slot = slots_[place_of(hash)];
        if (slot.number != 0 && slot.tag == tag_of(hash))
            __builtin_prefetch(cells_.data() + (slot.number - 1) * stride_, 1);
    }
    void grow();
    std::size_t stride_;
    std::vector<TermId, LargePages<TermId>> cells_;  // of each row, its cells and its count, modulo 2^64
    std::vector<Slot, LargePages<Slot>> slots_;
    std::size_t size_ = 0;    // rows
    std::size_t absent_ = 0;  // rows with count 0
};

}  // namespace penstock::expr
