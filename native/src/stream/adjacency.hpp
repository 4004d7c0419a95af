// The edges of one label in one direction: a map from each vertex to its neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "source.hpp"
#include "stream/aged_groups.hpp"
#include "stream/hash.hpp"
#include "stream/neighbour_list.hpp"
#include "stream/touched.hpp"

namespace penstock {

/// An edge expires when its record leaves the queue. `held`: the range of the records in the queue. The expiry of an
/// edge needs no call. Only when the youngest record of a vertex leaves the queue, the owner calls leave(), which
/// removes the vertex. Record ids ascend from call to call.
class Adjacency {
public:
    /// The effect on records when an edge is added, or added again.
    struct Linked {
        bool first;       // whether the edge is the vertex's first
        bool in_block;    // whether the vertex's list has a block: must be passed to leave()
        RecordId before;  // the vertex's previous youngest record; the added record replaces it
    };

    Adjacency() = default;
    ~Adjacency();
    Adjacency(const Adjacency&) = delete;
    Adjacency& operator=(const Adjacency&) = delete;

    std::size_t vertices() const { return slots_.size(); }
    std::size_t bytes() const { return slots_.bytes() + list_bytes_; }
    bool fits_cache() const { return bytes() <= kCached; }

    static std::uint32_t hash(TermId vertex) { return hash_id(vertex); }
    // Prefetches. They must be called in this order. Each must be called when the cache lines of the previous prefetch
    // are cached.
    void prefetch(std::uint32_t hash) const { slots_.prefetch(hash); }
    void prefetch_slot(std::uint32_t hash) const { slots_.prefetch_slot(hash); }

    bool has(TermId vertex, std::uint32_t hash, Held held) { return static_cast<bool>(find(vertex, hash, held)); }
    std::size_t degree(TermId vertex, Held held) {
        const auto at = find(vertex, hash(vertex), held);
        return at ? at.slot().list.size(held) : 0;
    }
    /// Empty if the vertex has no edge here.
    std::span<const TermId> neighbours(TermId vertex, std::uint32_t hash, Held held) {
        const auto at = find(vertex, hash, held);
        return at ? at.slot().list.values(held) : std::span<const TermId>();
    }
    /// Null if the vertex has no edge here. Valid until the index changes.
    NeighbourList* list(TermId vertex, std::uint32_t hash, Held held) {
        const auto at = find(vertex, hash, held);
        return at ? &at.slot().list : nullptr;
    }
    /// Calls f(vertex, neighbours) for each vertex.
    template <class F>
    void each(Held held, F&& f) {
        slots_.each([&](auto at) { f(at.slot().vertex, at.slot().list.values(held)); });
    }

    /// Begins to record which lists change. The owner reports each changed vertex by touch(), and also the move.
    Touched& watch(std::uint64_t version) {
        if (!touched_) touched_ = std::make_unique<Touched>(version);
        return *touched_;
    }
    void touch(std::uint32_t hash, std::uint64_t move) {
        if (touched_) touched_->add(hash, move);
    }
    bool is_watched() const { return touched_ != nullptr; }

    /// Adds an edge that is absent; `hash` is the vertex's.
    Linked add(TermId vertex, std::uint32_t hash, TermId neighbour, RecordId id, Held held) {
        const auto [at, known] = slots_.find_or_take(hash, id, held, IsOf{vertex}, HashOf());
        if (!known) {
            at.slot() = {vertex, NeighbourList(neighbour)};
            return {true, false, id};
        }
        NeighbourList& list = at.slot().list;
        const RecordId before = at.id();
        if (!list.add_inline(neighbour, before, held)) add_to_block(list, neighbour, id, before, held);
        slots_.renew(hash, at, id);
        return {false, list.in_block(), before};
    }
    /// Adds again the edge whose last occurrence has the record `old`.
    Linked refresh(TermId vertex, std::uint32_t hash, TermId neighbour, RecordId old, RecordId id, Held held);
    /// Removes the vertex whose youngest record, `id`, is about to leave the queue. Returns true if the table is now
    /// too large. The caller must then call fit() when the record has left.
    bool leave(std::uint32_t hash, RecordId id, bool in_block) {
        const auto at = slots_.leave(hash, id);
        if (in_block) free(at.slot().list);
        return slots_.is_sparse();
    }
    void fit(Held held) { slots_.fit(held, HashOf()); }
    void forget_old_ids(Held held);

private:
    static constexpr std::size_t kCached = 512 << 10;  // about half of a second-level cache

    struct Slot {
        TermId vertex = 0;
        NeighbourList list;
    };
    static_assert(sizeof(Slot) == 32);
    using Slots = AgedGroups<Slot>;

    struct HashOf {
        std::uint32_t operator()(Slots::Place at) const { return hash(at.slot().vertex); }
    };
    struct IsOf {
        TermId vertex;
        bool operator()(Slots::Place at) const { return at.slot().vertex == vertex; }
    };
    Slots::Place find(TermId vertex, std::uint32_t hash, Held held) { return slots_.find(hash, held, IsOf{vertex}); }
    void add_to_block(NeighbourList& list, TermId neighbour, RecordId id, RecordId youngest, Held held);
    void free(NeighbourList& list);

    Slots slots_;
    std::size_t list_bytes_ = 0;
    std::unique_ptr<Touched> touched_;  // null until a reader asks for changes
};

}  // namespace penstock
