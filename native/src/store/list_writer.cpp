#include "store/list_writer.hpp"

#include <algorithm>
#include <limits>

#include "errors.hpp"
#include "store/lookup.hpp"

namespace penstock {

using layout::Entry;
using layout::ListExtent;
using layout::Offset;
using lookup::ExtentAt;
using lookup::for_each_extent;
using lookup::kScanned;

namespace {

constexpr std::uint32_t kOwnExtent = 64;  // so many ascending values do not share an extent with an older single one
constexpr std::uint64_t kMaxGrowth = 1u << 24;  // spare values of a tail extent: 128 MiB

}  // namespace

void ValueIndex::place(Slot slot) {
    auto at = layout::reduce(mix(slot.value), slots_.size());
    while (slots_[at].value != 0) at = at + 1 == slots_.size() ? 0 : at + 1;
    slots_[at] = slot;
}

void ValueIndex::insert(TermId value, std::uint32_t position) {
    if (used_ * 3 >= slots_.size() * 2) {
        std::vector<Slot> old(std::max<std::size_t>(128, slots_.size() * 2));
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.value != 0) place(slot);
    }
    place({value, position});
    ++used_;
}

std::uint32_t ValueIndex::find(TermId value) const {
    if (slots_.empty()) return kAbsent;
    auto at = layout::reduce(mix(value), slots_.size());
    while (slots_[at].value != 0) {
        if (slots_[at].value == value) return slots_[at].position;
        at = at + 1 == slots_.size() ? 0 : at + 1;
    }
    return kAbsent;
}

// Values of the running commit come in once they are published: it may ask about a list that it has appended to.
const ValueIndex& ListWriter::unsorted_values(Offset offset) {
    LongList& list = long_lists_[offset];
    const auto& entry = region_.at<Entry>(offset);
    const std::uint32_t length = layout::length_of(entry.state);
    if (list.indexed == length) return list.unsorted;
    index_bytes_ -= list.unsorted.bytes();
    const ExtentAt begin = list.indexed == 0 ? lookup::first_extent(entry.head) : list.indexed_to;
    for_each_extent(region_, begin, length, [&](const ListExtent& extent, ExtentAt place) {
        const std::uint32_t n = std::min(extent.capacity, length - place.first);
        const std::uint32_t known = list.indexed > place.first ? list.indexed - place.first : 0;
        for (std::uint32_t i = std::max(extent.sorted, known); i < n; ++i)
            list.unsorted.insert(extent.values()[i], place.first + i);
        list.indexed_to = place;
        return false;
    });
    list.indexed = length;
    index_bytes_ += list.unsorted.bytes();
    return list.unsorted;
}

std::uint32_t ListWriter::find(Offset offset, TermId value) {
    const auto& entry = region_.at<Entry>(offset);
    const std::uint32_t length = layout::length_of(entry.state);
    if (length <= kScanned || !layout::is_extent(entry.head))
        return lookup::find_value(region_, entry.head, length, value);
    std::uint32_t position = kAbsent;
    std::uint64_t unsorted = 0;
    for_each_extent(region_, lookup::first_extent(entry.head), length, [&](const ListExtent& extent, ExtentAt place) {
        const std::uint32_t found = lookup::search_sorted(extent, value);
        if (found != kAbsent) position = place.first + found;
        unsorted += std::min(extent.capacity, length - place.first) - extent.sorted;
        return found != kAbsent;
    });
    if (position != kAbsent || unsorted == 0) return position;
    return unsorted > kScanned ? unsorted_values(offset).find(value)
                               : lookup::find_value(region_, entry.head, length, value);
}

Offset ListWriter::make_extent(std::uint64_t capacity, std::span<const TermId> values) {
    const Offset offset = region_.allocate(ListExtent::bytes(capacity));
    auto& extent = region_.at<ListExtent>(offset);
    extent.capacity = static_cast<std::uint32_t>(capacity);
    extent.sorted = static_cast<std::uint32_t>(std::is_sorted_until(values.begin(), values.end()) - values.begin());
    extent.next = 0;
    std::copy(values.begin(), values.end(), extent.values());
    return offset;
}

Entry ListWriter::create(std::span<const TermId> values, Snapshot snapshot) {
    const auto length = static_cast<std::uint32_t>(values.size());
    const TermId head = length == 1 ? values[0] : layout::extent_head(make_extent(length, values));
    return {layout::make_state(snapshot, length), head};
}

/// For a list that had one value, or none yet: its new head.
TermId ListWriter::make_first_extent(TermId old, std::span<const TermId> values) {
    if (old == kUnbound)
        return values.size() == 1 ? values[0] : layout::extent_head(make_extent(values.size(), values));
    if (values.size() >= kOwnExtent) {
        const Offset first = make_extent(1, {&old, 1});
        region_.at<ListExtent>(first).next = make_extent(values.size(), values);
        return layout::extent_head(first);
    }
    TermId all[kOwnExtent] = {old};
    std::copy(values.begin(), values.end(), all + 1);
    return layout::extent_head(make_extent(values.size() + 2, {all, values.size() + 1}));
}

/// Puts values behind those of a list in extents: into the last one as far as they fit, the others into a new one.
void ListWriter::extend(Offset offset, std::uint32_t length, std::span<const TermId> values) {
    LongList* known = length > kScanned ? &long_lists_[offset] : nullptr;
    ExtentAt last = known != nullptr && known->last.offset != 0 ? known->last
                                                                : lookup::first_extent(region_.at<Entry>(offset).head);
    for_each_extent(region_, last, length, [&](const ListExtent&, ExtentAt place) {
        last = place;
        return false;
    });
    auto& extent = region_.at<ListExtent>(last.offset);
    const std::uint32_t used = length - last.first;
    const std::size_t fitting = std::min<std::size_t>(values.size(), extent.capacity - used);
    std::copy_n(values.begin(), fitting, extent.values() + used);
    if (const auto rest = values.subspan(fitting); !rest.empty()) {
        const std::uint64_t growth = std::clamp<std::uint64_t>(length / 2, 2, kMaxGrowth);
        last = {make_extent(std::max<std::uint64_t>(rest.size(), growth), rest), last.first + extent.capacity};
        publication_.store(extent.next, last.offset);
    }
    if (known == nullptr) return;
    known->last = last;
    tainted_.push_back(offset);
}

void ListWriter::append(Offset offset, std::span<const TermId> values, Snapshot snapshot) {
    auto& entry = region_.at<Entry>(offset);
    const std::uint32_t length = layout::length_of(entry.state);
    const std::uint64_t longer = std::uint64_t{length} + values.size();
    if (longer >= kAbsent) throw LimitError("a vertex has more than 2^32 neighbours by one label");
    if (layout::is_extent(entry.head))
        extend(offset, length, values);
    else
        publication_.store(entry.head, make_first_extent(entry.head, values));
    publication_.store(entry.state, layout::make_state(snapshot, static_cast<std::uint32_t>(longer)));
}

void ListWriter::abandon() {
    for (Offset offset : tainted_) {
        const auto found = long_lists_.find(offset);
        if (found != long_lists_.end()) found->second.last = {0, 0};
    }
    tainted_.clear();
}

std::size_t ListWriter::bytes() const {
    constexpr std::size_t kNode = sizeof(Offset) + sizeof(LongList) + 2 * sizeof(void*);
    return index_bytes_ + long_lists_.size() * kNode;
}

}  // namespace penstock
