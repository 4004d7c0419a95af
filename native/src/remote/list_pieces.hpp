// Traversal of a list's values by a remote view: first the cached values, then the extents.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "remote/remote_view.hpp"

namespace penstock::remote {

/// Calls visit(extent, values, position, n) for the pieces of positions [begin, end) that are in extents, not cached.
template <class Visit>
void RemoteView::for_each_unknown(const ShardMemory& memory, const List& list, std::uint32_t begin, std::uint32_t end,
                                  Visit visit) const {
    ExtentAt place = lookup::first_extent(list.head);
    if (list.known != nullptr && !list.known->extents.empty()) {
        const KnownExtent& last = list.known->extents.back();
        const std::uint64_t until = std::uint64_t{last.first} + last.capacity;
        const layout::Offset link = last.offset + offsetof(layout::ListExtent, next);
        if (end > until) memory.expect_word(link);
        if (begin < until) {
            const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, until) - begin);
            const TermId* const values = memory.values(last.offset + layout::ListExtent::bytes(begin - last.first), n);
            if (values == nullptr) return;
            visit(last, values, begin, n);
        }
        if (end <= until) return;
        place = {memory.word_now(link), static_cast<std::uint32_t>(until)};
        if (memory.missing()) return;
    }
    lookup::for_each_extent(memory, place, end, [&](const layout::ListExtent& extent, ExtentAt at) {
        const std::uint32_t from = std::max(begin, at.first);
        const auto to =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(end, std::uint64_t{at.first} + extent.capacity));
        const KnownExtent known{at.offset, at.first, extent.capacity, extent.sorted};
        if (from < to) visit(known, extent.values() + (from - at.first), from, to - from);
        return false;
    });
}

/// Calls visit(values, n) for the pieces of positions [begin, end).
template <class Visit>
void RemoteView::for_each_position(const ShardMemory& memory, const List& list, std::uint32_t begin, std::uint32_t end,
                                   Visit visit) const {
    const std::uint32_t known = list.known != nullptr ? list.known->length() : 0;
    if (begin < std::min(end, known))
        visit(list.known->values.data() + begin, std::size_t{std::min(end, known) - begin});
    begin = std::max(begin, known);
    if (begin >= end) return;
    if (!layout::is_extent(list.head)) return visit(&list.head, std::size_t{1});
    for_each_unknown(memory, list, begin, end,
                     [&](const KnownExtent&, const TermId* values, std::uint32_t, std::size_t n) { visit(values, n); });
}

/// Calls visit(values, n) for each piece of the list that is visible to this view.
template <class Visit>
void RemoteView::for_each_visible(Operation& operation, const List& list, Visit visit) const {
    if (list.entry == 0) return;
    const ShardMemory memory = this->memory(operation, list.shard);
    if (whole(list)) return for_each_position(memory, list, 0, list.length(), visit);
    Ranges ranges;
    ranges_of(operation, list, ranges);
    if (memory.missing()) return;
    for (const PositionRange& range : ranges) for_each_position(memory, list, range.begin, range.end, visit);
}

}  // namespace penstock::remote
