// Open-addressing table from 64-bit hashes to 32-bit slots. A cell contains 32 bits of the hash, and the slot. Growth
// and erasure therefore do not access the terms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

/// Not thread-safe. Slot 0 means "empty".
class HashCells {
public:
    /// The slot with the given hash for which equals(slot) holds, or 0.
    template <class Equals>
    std::uint32_t find(std::uint64_t hash, Equals&& equals) const {
        if (cells_.empty()) return 0;
        const std::uint32_t tag = tag_of_hash(hash);
        for (std::size_t i = tag & mask();; i = (i + 1) & mask()) {
            const std::uint64_t cell = cells_[i];
            if (slot_of(cell) == 0) return 0;
            if (static_cast<std::uint32_t>(cell >> 32) == tag && equals(slot_of(cell))) return slot_of(cell);
        }
    }
    /// The slot that find() would compare first: a hint for prefetching.
    std::uint32_t candidate(std::uint64_t hash) const {
        return find(hash, [](std::uint32_t) { return true; });
    }
    void prefetch(std::uint64_t hash) const {
        if (!cells_.empty()) __builtin_prefetch(&cells_[tag_of_hash(hash) & mask()]);
    }
    /// Inserts a pair, which must be absent.
    void insert(std::uint64_t hash, std::uint32_t slot) {
        if ((count_ + 1) * 4 > cells_.size() * 3) grow();
        place(cell_of(hash, slot));
        ++count_;
    }
    /// Erases a pair, which must be present. Later cells of its run move back, so there are no tombstones.
    void erase(std::uint64_t hash, std::uint32_t slot) {
        std::size_t hole = tag_of_hash(hash) & mask();
        while (cells_[hole] != cell_of(hash, slot)) hole = (hole + 1) & mask();
        for (std::size_t i = (hole + 1) & mask(); slot_of(cells_[i]) != 0; i = (i + 1) & mask()) {
            const std::size_t home = static_cast<std::uint32_t>(cells_[i] >> 32) & mask();
            if (((i - home) & mask()) < ((i - hole) & mask())) continue;  // its home lies after the hole
            cells_[hole] = cells_[i];
            hole = i;
        }
        cells_[hole] = 0;
        --count_;
    }
    std::size_t size() const { return count_; }
    std::size_t bytes() const { return cells_.capacity() * sizeof(std::uint64_t); }

private:
    static constexpr std::size_t kFirstCells = 16;

    static std::uint32_t tag_of_hash(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }
    static std::uint32_t slot_of(std::uint64_t cell) { return static_cast<std::uint32_t>(cell); }
    static std::uint64_t cell_of(std::uint64_t hash, std::uint32_t slot) { return (hash << 32) | slot; }
    std::size_t mask() const { return cells_.size() - 1; }

    void place(std::uint64_t cell) {
        std::size_t i = static_cast<std::uint32_t>(cell >> 32) & mask();
        while (slot_of(cells_[i]) != 0) i = (i + 1) & mask();
        cells_[i] = cell;
    }
    void grow() {
        std::vector<std::uint64_t> old(cells_.empty() ? kFirstCells : cells_.size() * 2);
        old.swap(cells_);
        for (const std::uint64_t cell : old)
            if (slot_of(cell) != 0) place(cell);
    }

    std::vector<std::uint64_t> cells_;  // the size is a power of two
    std::size_t count_ = 0;
};

}  // namespace penstock
