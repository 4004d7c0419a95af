// The edges of one label in one direction: vertex -> its neighbours, with the record of each edge beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "source.hpp"
#include "stream/hash.hpp"

namespace penstock {

/// Linear probing; a vertex with one neighbour (three quarters of them, NOTES.md) keeps it in its slot, others have a
/// block of values and records. An edge is found again by its place in the list, so hub vertices cost no more than
/// others.
class Adjacency {
public:
    struct Slot {
        TermId vertex = 0;
        union {
            TermId value = 0;  // capacity == 0
            TermId* values;    // `capacity` values, then as many records
        };
        std::uint32_t count = 0;  // 0 = free
        std::uint32_t capacity = 0;
        std::uint32_t record = 0;  // capacity == 0
        std::uint32_t link = 0;    // for the owner; moves with the vertex

        std::span<const TermId> neighbours() const { return {capacity == 0 ? &value : values, count}; }
        std::uint32_t* records() {
            return capacity == 0 ? &record : reinterpret_cast<std::uint32_t*>(values + capacity);
        }
    };
    static_assert(sizeof(Slot) == 32);

    Adjacency() = default;
    ~Adjacency();
    Adjacency(const Adjacency&) = delete;
    Adjacency& operator=(const Adjacency&) = delete;

    std::size_t vertices() const { return size_; }
    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot) + list_bytes_; }
    bool fits_cache() const { return slots_.size() * sizeof(Slot) <= kCached; }

    void prefetch(TermId vertex) const {
        if (!slots_.empty()) __builtin_prefetch(&slots_[home(vertex)]);
    }

    /// nullptr where the vertex has no edge here.
    const Slot* find(TermId vertex) const {
        if (slots_.empty()) return nullptr;
        for (std::size_t at = home(vertex); slots_[at].count != 0; at = (at + 1) & mask()) {
            if (slots_[at].vertex == vertex) return &slots_[at];
        }
        return nullptr;
    }
    Slot* find(TermId vertex) { return const_cast<Slot*>(static_cast<const Adjacency*>(this)->find(vertex)); }

    /// Adds an edge that is not there yet. Its place is the new slot count - 1.
    Slot& add(TermId vertex, TermId neighbour, std::uint32_t record);

    /// Removes the neighbour at that place. Where another one took its place, that one's record is returned, else
    /// `nothing`. `last` tells whether the vertex left with it; its link is in `link` then.
    struct Removed {
        bool moved = false;
        std::uint32_t record = 0;  // of the one that moved
        bool last = false;
        std::uint32_t link = 0;
    };
    Removed remove(TermId vertex, std::uint32_t place);

    template <class F>
    void each(F&& f) const {
        for (const Slot& slot : slots_) {
            if (slot.count != 0) f(slot);
        }
    }

    template <class F>
    void each_slot(F&& f) {
        for (Slot& slot : slots_) {
            if (slot.count != 0) f(slot);
        }
    }

private:
    static constexpr std::size_t kSmallest = 4;
    static constexpr std::size_t kLoad = 7, kLoadOf = 10;  // grows above 7/10
    static constexpr std::size_t kSparse = 8;              // shrinks below 1/8
    static constexpr std::size_t kCached = 512 << 10;      // about half of a second-level cache

    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t home(TermId vertex) const { return mix(vertex) >> shift_; }
    Slot& slot_for(TermId vertex);
    void free_slot(std::size_t hole);
    void resize(std::size_t slots);
    void set_capacity(Slot& slot, std::uint32_t capacity);

    std::vector<Slot> slots_;
    std::size_t size_ = 0, list_bytes_ = 0;
    int shift_ = 64;
};

}  // namespace penstock
