#include "stream/adjacency.hpp"

#include <algorithm>

namespace penstock {

Adjacency::~Adjacency() {
    slots_.each([this](const Slot& slot) { free_list(slot); });
}

void Adjacency::prefetch_list(TermId vertex) const {
    const Slot* const slot = find(vertex);
    if (slot != nullptr && slot->capacity != kInline) __builtin_prefetch(slot->block);
}

bool Adjacency::add(TermId vertex, TermId neighbour, std::uint32_t id) {
    Slot* const known = find(vertex);
    if (known == nullptr) {
        Slot slot;
        slot.vertex = vertex;
        slot.count = 1;
        slot.values[0] = neighbour;
        slots_.insert(slot);
        return true;
    }
    if (known->count == known->capacity) resize(*known, known->capacity < kBlock ? 2 * known->capacity : kHub);
    if (known->capacity == kHub)
        counting(*known, [&] { known->hub->add(neighbour, id); });
    else
        known->data()[known->count] = neighbour;
    ++known->count;
    return false;
}

bool Adjacency::remove(TermId vertex, TermId neighbour) {
    Slot& slot = *find(vertex);
    if (slot.count == 1) {
        free_list(slot);
        slots_.erase(slot.hash(), [vertex](const Slot& other) { return other.vertex == vertex; });
        return true;
    }
    if (slot.capacity == kHub) {
        counting(slot, [&] { slot.hub->remove(neighbour); });
    } else {
        TermId* const end = slot.data() + slot.count;
        TermId* const place = std::find(slot.data(), end, neighbour);
        std::copy(place + 1, end, place);
    }
    --slot.count;
    // Half as large only when a quarter full: a vertex whose degree goes up and down by one allocates nothing.
    if (slot.capacity == kHub) {
        if (slot.count <= kBlock / 2) resize(slot, kBlock);
    } else if (slot.count <= slot.capacity / 4) {
        resize(slot, slot.capacity / 2);
    }
    return false;
}

void Adjacency::refresh(TermId vertex, TermId neighbour, std::uint32_t before, std::uint32_t id) {
    Slot& slot = *find(vertex);
    if (slot.capacity == kHub) return counting(slot, [&] { slot.hub->refresh(neighbour, before, id); });
    TermId* const end = slot.data() + slot.count;
    TermId* const place = std::find(slot.data(), end, neighbour);
    std::rotate(place, place + 1, end);
}

void Adjacency::resize(Slot& slot, std::uint32_t capacity) {
    const auto list = slot.list();
    Slot resized = slot;
    resized.capacity = capacity;
    if (capacity == kHub) {
        resized.hub = new HubList(list);
    } else {
        if (capacity > kInline) resized.block = new TermId[capacity];
        std::copy(list.begin(), list.end(), resized.data());
    }
    free_list(slot);
    slot = resized;
    list_bytes_ += list_bytes(slot);
}

void Adjacency::free_list(const Slot& slot) {
    list_bytes_ -= list_bytes(slot);
    if (slot.capacity == kHub)
        delete slot.hub;
    else if (slot.capacity != kInline)
        delete[] slot.block;
}

std::size_t Adjacency::list_bytes(const Slot& slot) {
    if (slot.capacity == kHub) return slot.hub->bytes();
    return slot.capacity == kInline ? 0 : slot.capacity * sizeof(TermId);
}

/// Changes a hub's list and keeps account of its bytes.
template <class F>
void Adjacency::counting(const Slot& slot, F&& change) {
    list_bytes_ -= slot.hub->bytes();
    change();
    list_bytes_ += slot.hub->bytes();
}

}  // namespace penstock
