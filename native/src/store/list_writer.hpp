// The writer's side of neighbour lists: appends beyond the published length, and searches for stored values.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/layout.hpp"
#include "store/list_hints.hpp"
#include "store/lookup.hpp"
#include "store/publication.hpp"
#include "store/region.hpp"

namespace penstock {

using lookup::kAbsent;

/// Positions of values, by value: open addressing; grows by doubling.
class ValueIndex {
public:
    void reserve(std::size_t values);
    void insert(TermId value, std::uint32_t position);
    std::uint32_t find(TermId value) const;  // kAbsent if not found
    std::size_t size() const { return used_; }
    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

private:
    struct Slot {
        TermId value = 0;
        std::uint32_t position = 0;
    };
    void place(Slot slot);
    std::vector<Slot> slots_;
    std::size_t used_ = 0;
};

/// Each list changes at most once per commit.
class ListWriter {
public:
    ListWriter(Region& region, Publication& publication) : region_(region), publication_(publication) {}

    /// Prefetches the memory that find() and append() load first, so that the cache misses of many lists overlap.
    /// prefetch() fetches the list's hint. When the hint is in the cache, prefetch_tail() fetches the place after the
    /// last value.
    void prefetch(layout::Offset entry) const { hints_.prefetch(entry); }
    void prefetch_tail(layout::Offset entry);

    /// Position of the value in the published list; kAbsent if it is not there.
    std::uint32_t find(layout::Offset entry, TermId value);
    /// As find(), for a value that the list probably contains: makes no filter.
    std::uint32_t find_likely(layout::Offset entry, TermId value);

    /// Creates a list that no reader can reach yet. `values` ascend and are not empty; the extent has exact size.
    layout::Entry create(std::span<const TermId> values, Snapshot snapshot);

    /// Writes ascending words behind the published ones and prepares the words that publish them: values, and removal
    /// words if the list `has_removals` from now on. LimitError if the list would reach 2^32 words.
    void append(layout::Offset entry, std::span<const TermId> values, Snapshot snapshot, bool has_removals);

    /// Must be called before the entry's memory is reused, and before any change of the list other than append().
    void forget(layout::Offset entry);

    /// keep() ends a published commit. abandon() ends a commit that rolls back, and discards the hints that this commit
    /// has made.
    void keep() {
        hinted_ = false;
        indexed_.clear();
    }
    void abandon();
    std::size_t bytes() const;

private:
    /// Accelerates searches in a list that is too long for a filter: sorted runs long enough for binary search, and an
    /// index of the other values. Both cover the first `indexed` positions.
    struct LongList {
        std::vector<lookup::ExtentAt> sorted;  // extents that start with such a run
        ValueIndex others;
        std::uint32_t indexed = 0;
        lookup::ExtentAt indexed_to{0, 0};  // the extent that holds the last indexed value

        std::size_t bytes() const { return sorted.capacity() * sizeof(lookup::ExtentAt) + others.bytes(); }
    };

    layout::Offset make_extent(std::uint64_t capacity, std::span<const TermId> values);
    TermId make_first_extent(TermId old, std::span<const TermId> values);
    void extend(layout::Offset entry, std::uint32_t length, std::span<const TermId> values);
    void update_hint(ListHint& hint, std::uint32_t length, lookup::ExtentAt tail, std::span<const TermId> values);
    lookup::ExtentAt find_tail(layout::Offset entry, std::uint32_t length) const;
    const ListHint& filtered_hint(layout::Offset entry, std::uint32_t length);
    const LongList& long_list(layout::Offset entry, std::uint32_t length);
    void complete(LongList& list, layout::Offset entry, std::uint32_t length) const;
    std::uint32_t find_in_long(layout::Offset entry, std::uint32_t length, TermId value);

    Region& region_;
    Publication& publication_;
    ListHints hints_;
    std::vector<LongList> long_lists_;
    std::unordered_map<layout::Offset, std::size_t> long_numbers_;  // by entry: position in long_lists_, from 1
    // Changes of the running commit to the members above
    bool hinted_ = false;
    std::vector<std::size_t> indexed_;  // numbers of long lists
};

}  // namespace penstock
