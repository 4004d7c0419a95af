#include "stream/adjacency.hpp"

namespace penstock {

Adjacency::~Adjacency() {
    slots_.each([](Slots::Place at) { at.slot().list.free(); });
}

void Adjacency::add_to_block(NeighbourList& list, TermId neighbour, RecordId id, RecordId youngest, Held held) {
    list_bytes_ -= list.bytes();
    list.add_to_block(neighbour, id, youngest, held);
    list_bytes_ += list.bytes();
}

Adjacency::Linked Adjacency::refresh(TermId vertex, std::uint32_t hash, TermId neighbour, RecordId old, RecordId id,
                                     Held held) {
    const auto at = find(vertex, hash, held);
    NeighbourList& list = at.slot().list;
    const RecordId before = at.id();
    list_bytes_ -= list.bytes();
    list.refresh(neighbour, old, id, before, held);
    list_bytes_ += list.bytes();
    slots_.renew(hash, at, id);
    return {false, list.in_block(), before};
}

void Adjacency::free(NeighbourList& list) {
    list_bytes_ -= list.bytes();
    list.free();
}

void Adjacency::forget_old_ids(Held held) {
    slots_.each([held](Slots::Place at) { at.slot().list.forget_old_ids(held); });
    slots_.forget_old_ids(held);
}

}  // namespace penstock
