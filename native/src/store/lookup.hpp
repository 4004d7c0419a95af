// Traversals of a region, shared by all readers: views of this process, the writer, and readers in other processes.
// `Memory` provides `at<T>(offset, bytes)`. Region trusts every offset. ForeignRegion (shard_reader.cpp) checks every
// offset, because memory that was recycled during the read can contain invalid offsets. ShardMemory (remote/) returns
// zeros, which end every traversal, for bytes that it must first fetch from another node. `extent(offset, n)` returns
// an extent's header and its first n values, or fewer values if the extent has fewer. ShardMemory returns nullptr if it
// must first fetch the extent.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "store/layout.hpp"

namespace penstock::lookup {

using layout::Bucket;
using layout::Directory;
using layout::Entry;
using layout::ListExtent;
using layout::Offset;
using layout::Ref;
using layout::Slot;
using layout::Table;

/// The main bucket of the hash in the given generation of its part (a Table::make_word).
inline Offset first_bucket(std::uint64_t table, std::uint64_t hash) {
    const std::uint64_t number = layout::reduce(hash << Table::kPartBits, Table::buckets_of(table));
    return Table::bucket_at(Table::offset_of(table), number);
}
/// The main bucket in the current generation. The generation's offset is loaded after the snapshot number, so the
/// generation contains every slot of that snapshot. If a larger generation is published meanwhile, the older generation
/// stays valid.
template <class Memory>
Offset current_bucket(const Memory& memory, std::uint64_t hash) {
    const auto& header = memory.template at<layout::Header>(0);
    return first_bucket(layout::load_acquire(header.tables[Table::part(hash)]), hash);  // the table's slots
}

/// Calls accept(ref) for each slot of the given key and kind until it returns true. Returns whether it did.
template <class Memory, class Accept>
bool find_slot(const Memory& memory, Offset bucket_offset, TermId key, std::uint64_t kind, Accept accept) {
    while (bucket_offset != 0) {
        const auto& bucket = memory.template at<Bucket>(bucket_offset, sizeof(Bucket));
        for (const Slot& slot : bucket.slots) {
            const TermId found = layout::load_acquire(slot.key);  // makes slot.ref and its target visible
            if (found == 0) return false;
            if (found == key && (slot.ref & Ref::kKindMask) == kind && accept(slot.ref)) return true;
        }
        bucket_offset = layout::load_acquire(bucket.overflow);  // makes the zeroed overflow bucket visible
    }
    return false;
}

/// Offset of the vertex's record in the bucket's chain; 0 if it has none.
template <class Memory>
Offset find_record(const Memory& memory, Offset bucket, TermId vertex, Dir dir) {
    Offset record = 0;
    find_slot(memory, bucket, vertex, Ref::record_kind(dir), [&](std::uint64_t ref) {
        record = Ref::offset(ref);
        return true;
    });
    return record;
}

/// Searches the table. For labels beyond the directory positions that are scanned.
template <class Memory>
Offset find_label_slot(const Memory& memory, TermId vertex, Label label, Dir dir) {
    Offset entry = 0;
    const std::uint64_t seed = memory.template at<layout::Header>(0).seed;
    const Offset bucket = current_bucket(memory, layout::label_hash(seed, vertex, label, dir));
    find_slot(memory, bucket, vertex, Ref::label_kind(dir), [&](std::uint64_t ref) {
        const Offset piece = Ref::offset(ref);
        const auto& directory = memory.template at<Directory>(piece, sizeof(Directory));
        const std::uint32_t capacity = Directory::capacity_of(layout::load_acquire(directory.state));
        const auto& labels = memory.template at<Directory>(piece, Directory::bytes(capacity));
        if (Ref::index(ref) >= capacity || labels.labels()[Ref::index(ref)] != label) return false;
        entry = Directory::entry_at(piece, capacity, Ref::index(ref));
        return true;
    });
    return entry;
}

/// Offset of the label's Entry in a record; 0 if it has none.
template <class Memory>
Offset find_entry(const Memory& memory, Offset record, TermId vertex, Label label, Dir dir) {
    std::uint32_t scanned = 0;
    for (Offset piece = record; piece != 0;) {
        if (scanned >= Directory::kScannedLabels) return find_label_slot(memory, vertex, label, dir);
        // Acquire: makes the labels and entries below the count visible, and the next piece.
        const std::uint64_t state = layout::load_acquire(memory.template at<Directory>(piece, sizeof(Directory)).state);
        const std::uint32_t capacity = Directory::capacity_of(state);
        const std::uint32_t count = Directory::count_of(state);
        const auto& directory = memory.template at<Directory>(piece, Directory::bytes(capacity));
        for (std::uint32_t i = 0; i < count; ++i)
            if (directory.labels()[i] == label) return Directory::entry_at(piece, capacity, i);
        scanned += count;
        piece = Directory::next_of(state);
    }
    return 0;
}

/// Calls visit(label, entry offset) for every label of a record.
template <class Memory, class Visit>
void for_each_label(const Memory& memory, Offset record, Visit visit) {
    for (Offset piece = record; piece != 0;) {
        const std::uint64_t state = layout::load_acquire(memory.template at<Directory>(piece, sizeof(Directory)).state);
        const std::uint32_t capacity = Directory::capacity_of(state);
        const auto& directory = memory.template at<Directory>(piece, Directory::bytes(capacity));
        for (std::uint32_t i = 0; i < Directory::count_of(state); ++i)
            visit(directory.labels()[i], Directory::entry_at(piece, capacity, i));
        piece = Directory::next_of(state);
    }
}

/// An extent of a list's chain, and the list position of its first value.
struct ExtentAt {
    Offset offset;
    std::uint32_t first;
};

/// Calls visit(extent, its place) along a chain from the given place, until it returns true or the list ends.
template <class Memory, class Visit>
void for_each_extent(const Memory& memory, ExtentAt place, std::uint32_t length, Visit visit) {
    for (;;) {
        const ListExtent* extent = memory.extent(place.offset, length - place.first);
        if (extent == nullptr || visit(*extent, place) || length - place.first <= extent->capacity) return;
        place.first += extent->capacity;
        place.offset = layout::load_acquire(extent->next);  // the extent's header; the state published its values
    }
}
inline ExtentAt first_extent(TermId head) { return {layout::extent_of(head), 0}; }

inline constexpr std::uint32_t kAbsent = 0xFFFFFFFFu;

/// What precedes the first extent of a list that was rewritten.
template <class Memory>
const layout::Rewritten& rewritten(const Memory& memory, TermId head) {
    return memory.template at<layout::Rewritten>(layout::extent_of(head) - sizeof(layout::Rewritten));
}

/// The state of a list that fits the head. The reader has loaded `state` first, and then the head. If the list was
/// rewritten in between, the result has the length of the same words in the new extents.
template <class Memory>
std::uint64_t settled_state(const Memory& memory, std::uint64_t state, TermId head) {
    if (!layout::is_rewritten(head)) return state;
    const layout::Rewritten& made = rewritten(memory, head);
    return made.follows(state) ? state - made.shift() : state;  // the length is in the low bits
}

/// Calls visit(values, n) for the pieces of positions [begin, end) of a list. The caller has loaded the list's state
/// before its head.
template <class Memory, class Visit>
void for_each_piece(const Memory& memory, const TermId& head, std::uint32_t begin, std::uint32_t end, Visit visit) {
    if (begin >= end) return;
    if (!layout::is_extent(head)) {
        visit(&head, std::size_t{1});
        return;
    }
    for_each_extent(memory, first_extent(head), end, [&](const ListExtent& extent, ExtentAt place) {
        const std::uint32_t first = place.first;
        const std::uint32_t from = std::max(begin, first);
        const auto to =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(end, std::uint64_t{first} + extent.capacity));
        if (from < to) visit(extent.values() + (from - first), std::size_t{to - from});
        return false;
    });
}

/// Calls visit(word, its position) for the removal words among positions [begin, end) of a list, in ascending order.
/// Skips ascending values, because removal words are greater.
template <class Memory, class Visit>
void for_each_removal(const Memory& memory, TermId head, std::uint32_t begin, std::uint32_t end, Visit visit) {
    if (begin >= end || !layout::is_extent(head)) return;
    for_each_extent(memory, first_extent(head), end, [&](const ListExtent& extent, ExtentAt place) {
        const TermId* const values = extent.values();
        const std::uint32_t n = std::min(extent.capacity, end - place.first), sorted = std::min(extent.sorted, n);
        const auto* const ascending = std::lower_bound(values, values + sorted, make_id(Tag::Removal, 0));
        const std::uint32_t known = begin > place.first ? begin - place.first : 0;
        for (auto i = std::max(static_cast<std::uint32_t>(ascending - values), known); i < n; ++i)
            if (layout::Removal::is(values[i])) visit(values[i], place.first + i);
        return false;
    });
}

inline constexpr std::uint32_t kScanned = 64;   // unsorted values up to this number are scanned linearly
inline constexpr std::uint32_t kBisected = 12;  // the same for sorted values

/// Index of a value in an array; n if it is not there. Compares eight values per branch, which compilers vectorise.
inline std::size_t scan(const TermId* values, std::size_t n, TermId value) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        bool found = false;
        for (std::size_t k = 0; k < 8; ++k) found |= values[i + k] == value;
        if (found) break;
    }
    while (i < n && values[i] != value) ++i;
    return i;
}

/// Position of a value in an ascending array.
inline std::uint32_t search_sorted(const TermId* values, std::uint32_t sorted, TermId value) {
    if (sorted <= kBisected) {
        const std::size_t found = scan(values, sorted, value);
        return found == sorted ? kAbsent : static_cast<std::uint32_t>(found);
    }
    // Terms that belong together are often loaded together, so many values lie outside of the list's range.
    const TermId* at = values;
    if (value < at[0] || value > at[sorted - 1]) return kAbsent;
    // No branch depends on the comparison: half of such branches would be mispredicted.
    for (std::size_t n = sorted; n > 1;) {
        const std::size_t half = n / 2;
        at += half * static_cast<std::size_t>(at[half - 1] < value);
        n -= half;
    }
    return *at == value ? static_cast<std::uint32_t>(at - values) : kAbsent;
}
inline std::uint32_t search_sorted(const ListExtent& extent, TermId value) {
    return search_sorted(extent.values(), extent.sorted, value);
}

/// Runs several searches of sorted arrays in lockstep, so that their cache misses overlap. (In a single search, each
/// load waits for the previous load.) The searches of a group have the same number of steps. If an added search has
/// another number of steps, the waiting group runs first.
class SortedSearches {
public:
    /// Searches `n` > 0 ascending values. Sets *found if the value is among them. This happens at the latest in
    /// finish().
    void add(const TermId* values, std::size_t n, TermId value, std::uint8_t* found) {
        const std::size_t width = std::bit_floor(n), rest = n - width;
        if (width != width_) {
            finish();
            width_ = width;
        }
        // Here and below no branch depends on the comparison: half of such branches would be mispredicted.
        at_[waiting_] = rest == 0 ? values : after(values, rest, value);
        value_[waiting_] = value;
        found_[waiting_] = found;
        // Terms that belong together are often loaded together, so many values lie outside of the list's range.
        waiting_ += static_cast<std::size_t>(value >= values[0]) & static_cast<std::size_t>(value <= values[n - 1]);
        if (waiting_ == kTogether) search(std::integral_constant<std::size_t, kTogether>());
    }

    void finish() { search(waiting_); }

private:
    static constexpr std::size_t kTogether = 8;

    /// Advances by `n` values if all these values are smaller than `value`.
    static const TermId* after(const TermId* values, std::size_t n, TermId value) {
        return values + (n & (std::size_t{0} - static_cast<std::size_t>(*(values + n - 1) < value)));
    }

    template <class Count>
    void search(Count count) {
        const TermId* at[kTogether];
        for (std::size_t i = 0; i < count; ++i) at[i] = at_[i];
        for (std::size_t step = width_ / 2; step > 0; step /= 2)
            for (std::size_t i = 0; i < count; ++i) at[i] = after(at[i], step, value_[i]);
        for (std::size_t i = 0; i < count; ++i) *found_[i] |= static_cast<std::uint8_t>(*at[i] == value_[i]);
        waiting_ = 0;
    }

    std::size_t width_ = 1, waiting_ = 0;
    const TermId* at_[kTogether];
    TermId value_[kTogether];
    std::uint8_t* found_[kTogether];
};

/// Position of a value among values [sorted, n) of an extent.
inline std::uint32_t search_unsorted(const ListExtent& extent, std::uint32_t n, TermId value) {
    const std::uint32_t begin = std::min(extent.sorted, n);
    const std::size_t found = begin + scan(extent.values() + begin, n - begin, value);
    return found == n ? kAbsent : static_cast<std::uint32_t>(found);
}

/// Position of a value in a list; kAbsent if it is not there.
template <class Memory>
std::uint32_t find_value(const Memory& memory, TermId head, std::uint32_t length, TermId value) {
    if (!layout::is_extent(head)) return length > 0 && head == value ? 0 : kAbsent;
    std::uint32_t position = kAbsent;
    for_each_extent(memory, first_extent(head), length, [&](const ListExtent& extent, ExtentAt place) {
        const std::uint32_t first = place.first;
        std::uint32_t found = search_sorted(extent, value);
        if (found == kAbsent) found = search_unsorted(extent, std::min(extent.capacity, length - first), value);
        if (found != kAbsent) position = first + found;
        return found != kAbsent;
    });
    return position;
}

}  // namespace penstock::lookup
