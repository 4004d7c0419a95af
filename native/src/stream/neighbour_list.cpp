#include "stream/neighbour_list.hpp"

#include <algorithm>
#include <new>

namespace penstock {

void NeighbourList::prefetch() const {
    if (capacity_ == kInline) return;
    if (capacity_ <= kShort) return __builtin_prefetch(queue_.block);
    __builtin_prefetch(queue_.block + queue_.begin);  // where one is removed
    __builtin_prefetch(queue_.block + queue_.end);    // where one is added
    __builtin_prefetch(ids() + queue_.end);
}

void NeighbourList::add_to_block(TermId value, std::uint32_t id) {
    if (capacity_ <= kShort ? count_ == capacity_ : queue_.end == capacity_) make_room(id);
    if (capacity_ <= kShort) {
        queue_.block[count_] = value;
    } else {
        queue_.block[queue_.end] = value;
        ids()[queue_.end++] = id;
    }
    ++count_;
}

void NeighbourList::remove_from_block(TermId value) {
    if (capacity_ <= kShort) {
        std::uint32_t place = 0;
        while (queue_.block[place] != value) ++place;
        for (--count_; place < count_; ++place) queue_.block[place] = queue_.block[place + 1];
    } else {
        const TermId* const place = std::find(queue_.block + queue_.begin, queue_.block + queue_.end, value);
        remove_at(static_cast<std::uint32_t>(place - queue_.block));
    }
    // Half as large only when a quarter full: a degree that goes up and down by one allocates nothing.
    if (count_ <= capacity_ / 4) resize(capacity_ / 2, 0);
}

void NeighbourList::refresh(TermId value, std::uint32_t before, std::uint32_t id) {
    if (capacity_ <= kShort) {
        TermId* const end = data() + count_;
        TermId* const place = std::find(data(), end, value);
        std::rotate(place, place + 1, end);
        return;
    }
    const auto older = [](std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; };
    const std::uint32_t* const place = std::lower_bound(ids() + queue_.begin, ids() + queue_.end, before, older);
    // Values from when the list was short share an id: then it is one of those that follow.
    const TermId* const found = std::find(queue_.block + (place - ids()), queue_.block + queue_.end, value);
    remove_at(static_cast<std::uint32_t>(found - queue_.block));
    add(value, id);
}

void NeighbourList::remove_at(std::uint32_t place) {
    queue_.block[place] = kHole;
    --count_;
    while (queue_.begin < queue_.end && queue_.block[queue_.begin] == kHole) ++queue_.begin;
}

/// A long list half of which has gone needs no larger block.
void NeighbourList::make_room(std::uint32_t id) {
    if (capacity_ > kShort && count_ <= capacity_ / 2)
        close_holes();
    else
        resize(2 * capacity_, id - 1);
}

/// Moves the values to the block's front.
void NeighbourList::close_holes() {
    std::uint32_t to = 0;
    for (std::uint32_t from = queue_.begin; from < queue_.end; ++from) {
        if (queue_.block[from] == kHole) continue;
        ids()[to] = ids()[from];
        queue_.block[to++] = queue_.block[from];
    }
    queue_.begin = 0;
    queue_.end = to;
}

/// A list that becomes long gives its values the id `older`, which is before any that will come.
void NeighbourList::resize(std::uint32_t capacity, std::uint32_t older) {
    const auto list = values();
    NeighbourList resized = *this;
    resized.capacity_ = capacity;
    if (capacity > kInline) {
        resized.queue_ = {static_cast<TermId*>(::operator new(block_bytes(capacity))), 0, count_};
        if (capacity > kShort && capacity_ > kShort)
            std::copy_n(ids() + queue_.begin, count_, resized.ids());
        else if (capacity > kShort)
            std::fill_n(resized.ids(), count_, older);
    }
    std::copy(list.begin(), list.end(), resized.data());
    free();
    *this = resized;
}

void NeighbourList::free() {
    if (capacity_ > kInline) ::operator delete(queue_.block);
}

}  // namespace penstock
