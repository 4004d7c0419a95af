#include "store/list_writer.hpp"

#include <algorithm>
#include <limits>

#include "errors.hpp"
#include "store/lookup.hpp"

namespace penstock {

using layout::Entry;
using layout::ListExtent;
using layout::Offset;

namespace {

constexpr std::uint32_t kScanned = 64;    // values compared one by one before anything cleverer is worth it
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

ValueIndex& ListWriter::unsorted_values(Offset offset) {
    auto [found, is_new] = unsorted_.try_emplace(offset);
    if (!is_new) return found->second;
    const auto& entry = region_.at<Entry>(offset);
    const std::uint32_t length = layout::length_of(entry.state);
    lookup::for_each_extent(region_, entry.head, length, [&](const ListExtent& extent, std::uint32_t first) {
        const std::uint32_t n = std::min(extent.capacity, length - first);
        for (std::uint32_t i = extent.sorted; i < n; ++i) found->second.insert(extent.values()[i], first + i);
        return false;
    });
    index_bytes_ += found->second.bytes();
    return found->second;
}

std::uint32_t ListWriter::find(Offset offset, TermId value) {
    const auto& entry = region_.at<Entry>(offset);
    const std::uint32_t length = layout::length_of(entry.state);
    if (length <= kScanned || !layout::is_extent(entry.head))
        return lookup::find_value(region_, entry.head, length, value);
    std::uint32_t position = kAbsent;
    std::uint64_t unsorted = 0;
    lookup::for_each_extent(region_, entry.head, length, [&](const ListExtent& extent, std::uint32_t first) {
        const std::uint32_t found = lookup::search_sorted(extent, value);
        if (found != kAbsent) position = first + found;
        unsorted += std::min(extent.capacity, length - first) - extent.sorted;
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

// Returns the list's head, new where the list had no extent yet.
TermId ListWriter::extend(const Entry& entry, std::span<const TermId> values, ValueIndex* index) {
    const std::uint32_t length = layout::length_of(entry.state);
    if (length == 0) return values.size() == 1 ? values[0] : layout::extent_head(make_extent(values.size(), values));
    if (!layout::is_extent(entry.head)) {
        const TermId old = entry.head;
        if (values.size() >= kOwnExtent) {
            const Offset first = make_extent(1, {&old, 1});
            region_.at<ListExtent>(first).next = make_extent(values.size(), values);
            return layout::extent_head(first);
        }
        TermId all[kOwnExtent] = {old};
        std::copy(values.begin(), values.end(), all + 1);
        return layout::extent_head(make_extent(values.size() + 2, {all, values.size() + 1}));
    }

    ListExtent* last = nullptr;
    std::uint32_t used = 0;
    lookup::for_each_extent(region_, entry.head, length, [&](const ListExtent& extent, std::uint32_t first) {
        last = const_cast<ListExtent*>(&extent);
        used = length - first;
        return false;
    });
    const std::size_t fitting = std::min<std::size_t>(values.size(), last->capacity - used);
    std::copy_n(values.begin(), fitting, last->values() + used);
    if (index != nullptr)
        for (std::size_t i = 0; i < fitting; ++i) index->insert(values[i], length + static_cast<std::uint32_t>(i));
    if (const auto rest = values.subspan(fitting); !rest.empty()) {
        const std::uint64_t growth = std::clamp<std::uint64_t>(length / 2, 2, kMaxGrowth);
        publication_.store(last->next, make_extent(std::max<std::uint64_t>(rest.size(), growth), rest));
    }
    return entry.head;
}

void ListWriter::append(Offset offset, std::span<const TermId> values, Snapshot snapshot) {
    auto& entry = region_.at<Entry>(offset);
    const std::uint64_t length = std::uint64_t{layout::length_of(entry.state)} + values.size();
    if (length >= kAbsent) throw LimitError("a vertex has more than 2^32 neighbours by one label");
    const auto known = unsorted_.find(offset);
    ValueIndex* index = known == unsorted_.end() ? nullptr : &known->second;
    const std::size_t before = index == nullptr ? 0 : index->bytes();
    const TermId head = extend(entry, values, index);
    if (index != nullptr) {
        index_bytes_ += index->bytes() - before;
        tainted_.push_back(offset);
    }
    if (head != entry.head) publication_.store(entry.head, head);
    publication_.store(entry.state, layout::make_state(snapshot, static_cast<std::uint32_t>(length)));
}

void ListWriter::abandon() {
    for (Offset offset : tainted_) {
        const auto found = unsorted_.find(offset);
        index_bytes_ -= found->second.bytes();
        unsorted_.erase(found);
    }
    tainted_.clear();
}

}  // namespace penstock
