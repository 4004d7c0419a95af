// The walks over a region that all readers share: views of this process, the writer itself, and readers that map the
// region in another process. `Memory` gives `at<T>(offset, bytes)`: Region trusts every offset, ForeignRegion
// (shard_reader.cpp) checks each, since it may be led astray by memory that was recycled under it, and ShardMemory
// (remote/) gives zeros for what it has to fetch from another node first, which end every walk. Of an extent,
// `extent(offset, n)` gives the header and its first n values, as far as it has so many, or nullptr likewise.
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

/// Main bucket in that generation (a Table::make_word) of the hash's part.
inline Offset first_bucket(std::uint64_t table, std::uint64_t hash) {
    const std::uint64_t number = layout::reduce(hash << Table::kPartBits, Table::buckets_of(table));
    return Table::bucket_at(Table::offset_of(table), number);
}
/// Main bucket in the current generation. Since its offset is loaded after the snapshot that is read, it lacks nothing
/// of it; and where a larger one is published meanwhile, the older one is as good.
template <class Memory>
Offset current_bucket(const Memory& memory, std::uint64_t hash) {
    const auto& header = memory.template at<layout::Header>(0);
    return first_bucket(layout::load_acquire(header.tables[Table::part(hash)]), hash);  // the table's slots
}

/// Calls accept(ref) for each slot of that key and kind until it returns true; says whether one did.
template <class Memory, class Accept>
bool find_slot(const Memory& memory, Offset bucket_offset, TermId key, std::uint64_t kind, Accept accept) {
    while (bucket_offset != 0) {
        const auto& bucket = memory.template at<Bucket>(bucket_offset, sizeof(Bucket));
        for (const Slot& slot : bucket.slots) {
            const TermId found = layout::load_acquire(slot.key);  // makes slot.ref and the record behind it visible
            if (found == 0) return false;
            if (found == key && (slot.ref & Ref::kKindMask) == kind && accept(slot.ref)) return true;
        }
        bucket_offset = layout::load_acquire(bucket.overflow);  // the zeroed bucket behind it
    }
    return false;
}

/// Offset of the vertex's record in that bucket's chain; 0 where it has none.
template <class Memory>
Offset find_record(const Memory& memory, Offset bucket, TermId vertex, Dir dir) {
    Offset record = 0;
    find_slot(memory, bucket, vertex, Ref::record_kind(dir), [&](std::uint64_t ref) {
        record = Ref::offset(ref);
        return true;
    });
    return record;
}

/// By the table: for labels beyond those that a directory is scanned for.
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

/// Offset of the Entry of that label in a record; 0 where it has none.
template <class Memory>
Offset find_entry(const Memory& memory, Offset record, TermId vertex, Label label, Dir dir) {
    std::uint32_t scanned = 0;
    for (Offset piece = record; piece != 0;) {
        if (scanned >= Directory::kScannedLabels) return find_label_slot(memory, vertex, label, dir);
        // Acquire: labels and entries below the count, and the next piece.
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

/// An extent of a list's chain, and the position of its first value in the list.
struct ExtentAt {
    Offset offset;
    std::uint32_t first;
};

/// Calls visit(extent, its place) along a chain from a place on, until it returns true or the list ends.
template <class Memory, class Visit>
void for_each_extent(const Memory& memory, ExtentAt place, std::uint32_t length, Visit visit) {
    for (;;) {
        const ListExtent* extent = memory.extent(place.offset, length - place.first);
        if (extent == nullptr || visit(*extent, place) || length - place.first <= extent->capacity) return;
        place.first += extent->capacity;
        place.offset =
            layout::load_acquire(extent->next);  // the extent's header; its values came with the entry's state
    }
}
inline ExtentAt first_extent(TermId head) { return {payload_of(head), 0}; }

/// Calls visit(values, n) for the pieces of positions [begin, end) of a list whose state was loaded before its head.
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

inline constexpr std::uint32_t kAbsent = 0xFFFFFFFFu;
inline constexpr std::uint32_t kScanned = 64;   // unsorted values compared one by one before cleverer ways are worth it
inline constexpr std::uint32_t kBisected = 12;  // of sorted ones it is fewer

/// Index of a value in an array; n where it is not. Eight comparisons before each branch: compilers make vectors of
/// that.
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

/// Position of a value among ascending ones.
inline std::uint32_t search_sorted(const TermId* values, std::uint32_t sorted, TermId value) {
    if (sorted <= kBisected) {
        const std::size_t found = scan(values, sorted, value);
        return found == sorted ? kAbsent : static_cast<std::uint32_t>(found);
    }
    // Terms that belong together are often loaded together: many a value lies outside of the whole list.
    const TermId* at = values;
    if (value < at[0] || value > at[sorted - 1]) return kAbsent;
    // Without a branch on what is compared: half of those would be mispredicted.
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

/// Searches of sorted arrays that take their steps together: one by itself is a chain of loads, each of which waits for
/// the one before. They are of arrays that need the same number of steps; another one lets those that wait go first.
class SortedSearches {
public:
    /// Sets *found, at the latest in finish(), where the value is among `n` > 0 ascending ones.
    void add(const TermId* values, std::size_t n, TermId value, std::uint8_t* found) {
        const std::size_t width = std::bit_floor(n), rest = n - width;
        if (width != width_) {
            finish();
            width_ = width;
        }
        // Without a branch on what is compared, here and below: half of those would be mispredicted.
        at_[waiting_] = rest == 0 ? values : after(values, rest, value);
        value_[waiting_] = value;
        found_[waiting_] = found;
        // Terms that belong together are often loaded together: many a value lies outside of the whole list.
        waiting_ += static_cast<std::size_t>(value >= values[0]) & static_cast<std::size_t>(value <= values[n - 1]);
        if (waiting_ == kTogether) search(std::integral_constant<std::size_t, kTogether>());
    }

    void finish() { search(waiting_); }

private:
    static constexpr std::size_t kTogether = 8;

    /// `n` values further where all of those are below.
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

/// Position of a value in a list; kAbsent where it is not.
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
