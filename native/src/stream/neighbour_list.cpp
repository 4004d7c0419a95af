#include "stream/neighbour_list.hpp"

#include <algorithm>

namespace penstock {

void NeighbourList::add_to_block(TermId value, RecordId id, RecordId youngest, Held held) {
    if (!in_block()) make_block(youngest);
    append(value, id, held);
}

void NeighbourList::refresh(TermId value, RecordId old, RecordId id, RecordId youngest, Held held) {
    if (!in_block()) {
        if (old == youngest) return;
        inline_[0] = inline_[1];
        oldest_ = youngest;
        inline_[1] = value;
        return;
    }
    leave_old(held);
    if (old == youngest) {
        ids()[queue_.end - 1] = id;
        oldest_ = ids()[queue_.begin];
        return;
    }
    const auto older = [held](RecordId a, RecordId b) { return held.age(a) > held.age(b); };
    const auto place = std::lower_bound(ids() + queue_.begin, ids() + queue_.end, old, older);
    queue_.block[place - ids()] = kHole;
    has_holes_ = true;
    append(value, id, held);
}

std::uint32_t NeighbourList::count() const {
    const std::uint32_t places = queue_.end - queue_.begin;
    if (!has_holes_) return places;
    const TermId* const begin = queue_.block + queue_.begin;
    return places - static_cast<std::uint32_t>(std::count(begin, begin + places, kHole));
}

/// Advances the begin to the first value whose record is held. There is one, and mostly it is near.
void NeighbourList::skip_old(Held held) {
    const auto old = [held](RecordId id) { return !held.has(id); };
    auto first = ids() + queue_.begin + 1;
    const auto near = std::min(first + kNear, ids() + queue_.end);
    while (first < near && old(*first)) ++first;
    if (first == near) first = std::partition_point(first, ids() + queue_.end, old);
    queue_.begin = static_cast<std::uint32_t>(first - ids());
    oldest_ = *first;
}

void NeighbourList::make_block(RecordId youngest) {
    const TermId first = inline_[0], second = inline_[1];
    capacity_bits_ = kSmallestBits;
    queue_ = {allocate(capacity()), 0, 2};
    queue_.block[0] = first;
    queue_.block[1] = second;
    ids()[0] = oldest_;
    ids()[1] = youngest;
}

void NeighbourList::append(TermId value, RecordId id, Held held) {
    if (queue_.end == capacity()) make_room(held);
    queue_.block[queue_.end] = value;
    ids()[queue_.end++] = id;
}

/// Reuses the block if that leaves a quarter of it free; halves the capacity if that leaves half of the smaller block.
void NeighbourList::make_room(Held held) {
    leave_old(held);
    const std::uint32_t values = count();
    if (values > capacity() / 4 * 3)
        move_to(capacity_bits_ + 1);
    else
        move_to(values <= capacity() / 4 && capacity_bits_ > kSmallestBits ? capacity_bits_ - 1 : capacity_bits_);
}

/// Moves the values to the front of this block, or of one of another capacity, and closes the holes.
void NeighbourList::move_to(std::uint8_t capacity_bits) {
    NeighbourList to = *this;
    to.capacity_bits_ = capacity_bits;
    if (capacity_bits != capacity_bits_) to.queue_.block = allocate(to.capacity());
    std::uint32_t end = 0;
    for (std::uint32_t from = queue_.begin; from < queue_.end; ++from) {
        if (queue_.block[from] == kHole) continue;
        to.ids()[end] = ids()[from];
        to.queue_.block[end++] = queue_.block[from];
    }
    if (capacity_bits != capacity_bits_) release(queue_.block, capacity());
    to.queue_.begin = 0;
    to.queue_.end = end;
    to.oldest_ = to.ids()[0];
    to.has_holes_ = false;
    *this = to;
}

void NeighbourList::forget_old_ids(Held held) {
    if (in_block())
        leave_old(held);
    else if (!has_two(held))
        inline_[0] = kHole;
}

void NeighbourList::free() {
    if (in_block()) release(queue_.block, capacity());
    *this = NeighbourList();
}

}  // namespace penstock
