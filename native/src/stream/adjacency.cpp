#include "stream/adjacency.hpp"

namespace penstock {

Adjacency::~Adjacency() {
    slots_.each([](Slot& slot) { slot.list.free(); });
}

void Adjacency::prefetch_list(TermId vertex) const {
    if (const Slot* const slot = find(vertex)) slot->list.prefetch();
}

bool Adjacency::add(TermId vertex, TermId neighbour, std::uint32_t id) {
    const std::uint32_t key = hash(vertex);
    if (Slot* const known = find(vertex, key)) {
        list_bytes_ -= known->list.bytes();
        known->list.add(neighbour, id);
        list_bytes_ += known->list.bytes();
        return false;
    }
    Slot slot;
    slot.vertex = vertex;
    slot.list.add(neighbour, id);
    slots_.insert(key, slot);
    return true;
}

void Adjacency::refresh(TermId vertex, TermId neighbour, std::uint32_t before, std::uint32_t id) {
    Slot& slot = *find(vertex, hash(vertex));
    list_bytes_ -= slot.list.bytes();
    slot.list.refresh(neighbour, before, id);
    list_bytes_ += slot.list.bytes();
}

bool Adjacency::remove(TermId vertex, TermId neighbour) {
    const std::uint32_t key = hash(vertex);
    Slot& slot = *find(vertex, key);
    list_bytes_ -= slot.list.bytes();
    if (slot.list.size() == 1) {
        slot.list.free();
        slots_.erase(key, &slot);
        return true;
    }
    slot.list.remove(neighbour);
    list_bytes_ += slot.list.bytes();
    return false;
}

}  // namespace penstock
