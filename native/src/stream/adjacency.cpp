#include "stream/adjacency.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace penstock {
namespace {

constexpr std::size_t list_bytes(std::uint32_t capacity) { return capacity * (sizeof(TermId) + sizeof(std::uint32_t)); }
constexpr std::uint32_t kSmallestList = 4;

}  // namespace

Adjacency::~Adjacency() {
    for (Slot& slot : slots_) {
        if (slot.capacity != 0) ::operator delete(slot.values);
    }
}

Adjacency::Slot& Adjacency::add(TermId vertex, TermId neighbour, std::uint32_t record) {
    Slot& slot = slot_for(vertex);
    if (slot.count == 0) {
        slot.vertex = vertex;
        slot.value = neighbour;
        slot.record = record;
        slot.count = 1;
        ++size_;
        return slot;
    }
    if (slot.count == std::max(slot.capacity, 1u)) set_capacity(slot, std::max(2 * slot.capacity, kSmallestList));
    slot.values[slot.count] = neighbour;
    slot.records()[slot.count] = record;
    ++slot.count;
    return slot;
}

Adjacency::Removed Adjacency::remove(TermId vertex, std::uint32_t place) {
    Slot& slot = *find(vertex);
    if (slot.count == 1) {
        const Removed removed{false, 0, true, slot.link};
        if (slot.capacity != 0) set_capacity(slot, 0);
        free_slot(static_cast<std::size_t>(&slot - slots_.data()));
        return removed;
    }
    const std::uint32_t end = --slot.count;
    Removed removed{place != end, slot.records()[end], false, 0};
    slot.values[place] = slot.values[end];
    slot.records()[place] = removed.record;
    if (slot.count == 1)
        set_capacity(slot, 0);
    else if (slot.count <= slot.capacity / 4 && slot.capacity > kSmallestList)
        set_capacity(slot, slot.capacity / 2);
    return removed;
}

/// Moves the list to a block of that capacity, or into the slot (0).
void Adjacency::set_capacity(Slot& slot, std::uint32_t capacity) {
    const Slot old = slot;
    Slot& from = const_cast<Slot&>(old);
    TermId* const values = capacity == 0 ? &slot.value : static_cast<TermId*>(::operator new(list_bytes(capacity)));
    std::uint32_t* const records = capacity == 0 ? &slot.record : reinterpret_cast<std::uint32_t*>(values + capacity);
    std::copy_n(from.neighbours().data(), old.count, values);
    std::copy_n(from.records(), old.count, records);
    if (capacity != 0) slot.values = values;
    slot.capacity = capacity;
    if (old.capacity != 0) ::operator delete(old.values);
    list_bytes_ += list_bytes(capacity);
    list_bytes_ -= list_bytes(old.capacity);
}

Adjacency::Slot& Adjacency::slot_for(TermId vertex) {
    if ((size_ + 1) * kLoadOf > slots_.size() * kLoad) resize(slots_.empty() ? kSmallest : 2 * slots_.size());
    std::size_t at = home(vertex);
    while (slots_[at].count != 0 && slots_[at].vertex != vertex) at = (at + 1) & mask();
    return slots_[at];
}

void Adjacency::free_slot(std::size_t hole) {
    // Backward shift: slots behind the hole move up unless that would put them before their home.
    for (std::size_t at = (hole + 1) & mask(); slots_[at].count != 0; at = (at + 1) & mask()) {
        if (((at - home(slots_[at].vertex)) & mask()) < ((at - hole) & mask())) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole] = {};
    --size_;
    if (size_ * kSparse < slots_.size() && slots_.size() > kSmallest) resize(slots_.size() / 2);
}

void Adjacency::resize(std::size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    shift_ = 64 - std::countr_zero(slots);
    for (const Slot& slot : old) {
        if (slot.count == 0) continue;
        std::size_t at = home(slot.vertex);
        while (slots_[at].count != 0) at = (at + 1) & mask();
        slots_[at] = slot;
    }
}

}  // namespace penstock
