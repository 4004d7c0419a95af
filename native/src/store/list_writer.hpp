// Neighbour lists, as their writer sees them: append beyond the published length, and look whether a value is there
// already.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/layout.hpp"
#include "store/lookup.hpp"
#include "store/publication.hpp"
#include "store/region.hpp"

namespace penstock {

using lookup::kAbsent;

/// Positions of values, by value: open addressing, grows by doubling.
class ValueIndex {
public:
    void insert(TermId value, std::uint32_t position);
    std::uint32_t find(TermId value) const;  // kAbsent where it is not
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

    /// Position of the value in the published list; kAbsent where it is not.
    std::uint32_t find(layout::Offset entry, TermId value);

    /// A list that no reader knows yet. `values` ascend, one at least; its extent has exactly their number.
    layout::Entry create(std::span<const TermId> values, Snapshot snapshot);

    /// Writes ascending values behind the published ones and prepares the words that publish them. LimitError at 2^32.
    void append(layout::Offset entry, std::span<const TermId> values, Snapshot snapshot);

    /// The commit is published, or given up: then its extents are forgotten.
    void keep() { tainted_.clear(); }
    void abandon();
    std::size_t bytes() const;

private:
    /// What the writer knows about a list with more than a few values, to spare it the way along the chain.
    struct LongList {
        lookup::ExtentAt last{0, 0};  // offset 0: not known yet
        ValueIndex unsorted;          // of the first `indexed` positions, those outside sorted runs
        std::uint32_t indexed = 0;
        lookup::ExtentAt indexed_to{0, 0};  // the extent that holds the last of them
    };

    layout::Offset make_extent(std::uint64_t capacity, std::span<const TermId> values);
    TermId make_first_extent(TermId old, std::span<const TermId> values);
    void extend(layout::Offset entry, std::uint32_t length, std::span<const TermId> values);
    const ValueIndex& unsorted_values(layout::Offset entry);

    Region& region_;
    Publication& publication_;
    std::unordered_map<layout::Offset, LongList> long_lists_;  // by entry
    std::vector<layout::Offset> tainted_;                      // those whose `last` may be the running commit's
    std::size_t index_bytes_ = 0;                              // of the value indexes
};

}  // namespace penstock
