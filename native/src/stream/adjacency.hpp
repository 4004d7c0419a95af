// The edges of one label in one direction: vertex -> its neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "source.hpp"
#include "stream/hash.hpp"
#include "stream/hash_groups.hpp"
#include "stream/neighbour_list.hpp"

namespace penstock {

/// Edges come and go in the order of a window's tuples (neighbour_list.hpp).
class Adjacency {
public:
    Adjacency() = default;
    ~Adjacency();
    Adjacency(const Adjacency&) = delete;
    Adjacency& operator=(const Adjacency&) = delete;

    std::size_t vertices() const { return slots_.size(); }
    std::size_t bytes() const { return slots_.bytes() + list_bytes_; }
    bool fits_cache() const { return bytes() <= kCached; }

    // In this order, each once the lines asked for by the one before are there.
    void prefetch(TermId vertex) const { slots_.prefetch(hash(vertex)); }
    void prefetch_slot(TermId vertex) const { slots_.prefetch_slot(hash(vertex)); }
    void prefetch_list(TermId vertex) const;

    bool has(TermId vertex) const { return find(vertex) != nullptr; }
    std::size_t degree(TermId vertex) const {
        const Slot* const slot = find(vertex);
        return slot == nullptr ? 0 : slot->list.size();
    }
    /// Empty where the vertex has no edge here.
    std::span<const TermId> neighbours(TermId vertex) {
        Slot* const slot = find(vertex, hash(vertex));
        return slot == nullptr ? std::span<const TermId>() : slot->list.values();
    }
    /// Calls f(vertex, neighbours) for each vertex.
    template <class F>
    void each(F&& f) {
        slots_.each([&](Slot& slot) { f(slot.vertex, slot.list.values()); });
    }

    /// Adds an edge that is not there yet; true where it is the vertex's first. Ids ascend from call to call where
    /// edges are ever refreshed.
    bool add(TermId vertex, TermId neighbour, std::uint32_t id = 0);
    /// The edge that was added (or last refreshed) with id `before` came again.
    void refresh(TermId vertex, TermId neighbour, std::uint32_t before, std::uint32_t id);
    /// Removes an edge that is there; true where it was the vertex's last.
    bool remove(TermId vertex, TermId neighbour);

private:
    static constexpr std::size_t kCached = 512 << 10;  // about half of a second-level cache

    struct Slot {
        TermId vertex = 0;
        NeighbourList list;
        std::uint32_t hash() const { return Adjacency::hash(vertex); }
    };
    static_assert(sizeof(Slot) == 32);

    static std::uint32_t hash(TermId vertex) { return hash_id(vertex); }
    const Slot* find(TermId vertex) const {
        return slots_.find(hash(vertex), [vertex](const Slot& slot) { return slot.vertex == vertex; });
    }
    Slot* find(TermId vertex, std::uint32_t hash) {
        return slots_.find(hash, [vertex](const Slot& slot) { return slot.vertex == vertex; });
    }

    HashGroups<Slot> slots_;
    std::size_t list_bytes_ = 0;
};

}  // namespace penstock
