// Neighbour lists, as their writer sees them: append beyond the published length, and look whether a value is there
// already.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/layout.hpp"
#include "store/list_notes.hpp"
#include "store/lookup.hpp"
#include "store/publication.hpp"
#include "store/region.hpp"

namespace penstock {

using lookup::kAbsent;

/// Positions of values, by value: open addressing, grows by doubling.
class ValueIndex {
public:
    void reserve(std::size_t values);
    void insert(TermId value, std::uint32_t position);
    std::uint32_t find(TermId value) const;  // kAbsent where it is not
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

/// Each list is changed at most once in a commit.
class ListWriter {
public:
    ListWriter(Region& region, Publication& publication) : region_(region), publication_(publication) {}

    /// Asks for what find() and append() will look at first, so that the waits for many lists overlap: its note, then,
    /// once that is there, the place behind its last value.
    void prefetch(layout::Offset entry) const { notes_.prefetch(entry); }
    void prefetch_tail(layout::Offset entry);

    /// Position of the value in the published list; kAbsent where it is not.
    std::uint32_t find(layout::Offset entry, TermId value);

    /// A list that no reader knows yet. `values` ascend, one at least; its extent has exactly their number.
    layout::Entry create(std::span<const TermId> values, Snapshot snapshot);

    /// Writes ascending values behind the published ones and prepares the words that publish them. LimitError at 2^32.
    void append(layout::Offset entry, std::span<const TermId> values, Snapshot snapshot);

    /// The commit is published, or given up: then what it noted is forgotten.
    void keep() {
        noted_ = false;
        indexed_.clear();
    }
    void abandon();
    std::size_t bytes() const;

private:
    /// The values of a list that is too long for a filter: sorted runs that are worth a bisection, and an index of the
    /// others, both of its first `indexed` positions.
    struct LongList {
        std::vector<lookup::ExtentAt> sorted;  // extents that begin with such a run
        ValueIndex others;
        std::uint32_t indexed = 0;
        lookup::ExtentAt indexed_to{0, 0};  // the extent that holds the last of them

        std::size_t bytes() const { return sorted.capacity() * sizeof(lookup::ExtentAt) + others.bytes(); }
    };

    layout::Offset make_extent(std::uint64_t capacity, std::span<const TermId> values);
    TermId make_first_extent(TermId old, std::span<const TermId> values);
    void extend(layout::Offset entry, std::uint32_t length, std::span<const TermId> values);
    void note_values(ListNote& note, std::uint32_t length, lookup::ExtentAt tail, std::span<const TermId> values);
    lookup::ExtentAt find_tail(layout::Offset entry, std::uint32_t length) const;
    const ListNote& filtered_note(layout::Offset entry, std::uint32_t length);
    const LongList& long_list(layout::Offset entry, std::uint32_t length);
    void complete(LongList& list, layout::Offset entry, std::uint32_t length) const;
    std::uint32_t find_in_long(layout::Offset entry, std::uint32_t length, TermId value);

    Region& region_;
    Publication& publication_;
    ListNotes notes_;
    std::vector<LongList> long_lists_;
    std::unordered_map<layout::Offset, std::size_t> long_numbers_;  // by entry: place in long_lists_, from 1 on
    // What the running commit has changed of these
    bool noted_ = false;
    std::vector<std::size_t> indexed_;  // numbers of long lists
};

}  // namespace penstock
