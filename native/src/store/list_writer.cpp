#include "store/list_writer.hpp"

#include <algorithm>
#include <bit>

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

// This many ascending values get an extent of their own, apart from a single older value.
constexpr std::uint32_t kOwnExtent = 64;
constexpr std::uint32_t kHinted = 2;            // longer lists have hints; shorter ones are traversed as fast
constexpr std::uint64_t kMaxGrowth = 1u << 24;  // spare values of a tail extent: 128 MiB

}  // namespace

void ValueIndex::place(Slot slot) {
    auto at = layout::reduce(mix(slot.value), slots_.size());
    while (slots_[at].value != 0) at = at + 1 == slots_.size() ? 0 : at + 1;
    slots_[at] = slot;
}

void ValueIndex::reserve(std::size_t values) {
    if (values * 3 < slots_.size() * 2) return;
    std::vector<Slot> old(std::bit_ceil(std::max<std::size_t>(values * 2, 16)));
    old.swap(slots_);
    for (const Slot& slot : old)
        if (slot.value != 0) place(slot);
}

void ValueIndex::insert(TermId value, std::uint32_t position) {
    reserve(used_ + 1);
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

/// Adds the published values that the index lacks.
void ListWriter::complete(LongList& list, Offset offset, std::uint32_t length) const {
    const ExtentAt begin = list.indexed == 0 ? lookup::first_extent(region_.at<Entry>(offset).head) : list.indexed_to;
    // Calls visit(extent, place, from, n): of its n values, those from `from` on are neither indexed nor in a long run.
    const auto for_each_new = [&](auto visit) {
        for_each_extent(region_, begin, length, [&](const ListExtent& extent, ExtentAt place) {
            const std::uint32_t known = list.indexed > place.first ? list.indexed - place.first : 0;
            const std::uint32_t run = extent.sorted > kScanned ? extent.sorted : 0;
            visit(extent, place, std::max(known, run), std::min(extent.capacity, length - place.first));
            return false;
        });
    };
    std::size_t values = list.others.size();
    for_each_new([&](const ListExtent&, ExtentAt, std::uint32_t from, std::uint32_t n) { values += n - from; });
    list.others.reserve(values);
    for_each_new([&](const ListExtent& extent, ExtentAt place, std::uint32_t from, std::uint32_t n) {
        if (extent.sorted > kScanned && list.indexed <= place.first) list.sorted.push_back(place);
        // Removal words are never sought, and one may occur very often.
        for (std::uint32_t i = from; i < n; ++i)
            if (!layout::Removal::is(extent.values()[i])) list.others.insert(extent.values()[i], place.first + i);
        list.indexed_to = place;
    });
    list.indexed = length;
}

const ListWriter::LongList& ListWriter::long_list(Offset offset, std::uint32_t length) {
    ListHint* hint = hints_.find(offset, length);
    if (hint == nullptr) hint = &hints_.put({offset, length, find_tail(offset, length)});
    if (hint->index() == 0) {
        const auto [at, fresh] = long_numbers_.try_emplace(offset, long_lists_.size() + 1);
        if (fresh) long_lists_.emplace_back();
        hint->set_index(at->second);
    }
    LongList& list = long_lists_[hint->index() - 1];
    if (list.indexed < length) complete(list, offset, length);
    return list;
}

std::uint32_t ListWriter::find_in_long(Offset offset, std::uint32_t length, TermId value) {
    const LongList& list = long_list(offset, length);
    for (const ExtentAt& place : list.sorted) {
        const std::uint32_t found = lookup::search_sorted(region_.at<ListExtent>(place.offset), value);
        if (found != kAbsent) return place.first + found;
    }
    const std::uint32_t found = list.others.find(value);
    return found < length ? found : kAbsent;  // it may contain values of the running commit
}

const ListHint& ListWriter::filtered_hint(Offset offset, std::uint32_t length) {
    ListHint* hint = hints_.find(offset, length);
    if (hint != nullptr && hint->filtered()) return *hint;
    ListHint made(offset, length, {0, 0});
    for_each_extent(region_, lookup::first_extent(region_.at<Entry>(offset).head), length,
                    [&](const ListExtent& extent, ExtentAt place) {
                        const std::uint32_t n = std::min(extent.capacity, length - place.first);
                        for (std::uint32_t i = 0; i < n; ++i) made.add(extent.values()[i]);
                        made.move_tail(length, place);
                        return false;
                    });
    made.set_filtered();
    return hints_.put(made);
}

std::uint32_t ListWriter::find(Offset offset, TermId value) {
    const auto& entry = region_.at<Entry>(offset);
    const std::uint32_t length = layout::length_of(entry.state);
    if (length > ListHint::kMostFiltered) return find_in_long(offset, length, value);
    if (length > kHinted && !filtered_hint(offset, length).may_hold(value)) return kAbsent;
    return lookup::find_value(region_, entry.head, length, value);
}

std::uint32_t ListWriter::find_likely(Offset offset, TermId value) {
    const auto& entry = region_.at<Entry>(offset);
    const std::uint32_t length = layout::length_of(entry.state);
    if (length > ListHint::kMostFiltered) return find_in_long(offset, length, value);
    return lookup::find_value(region_, entry.head, length, value);
}

void ListWriter::prefetch_tail(Offset offset) {
    const auto& entry = region_.at<Entry>(offset);
    if (!layout::is_extent(entry.head)) return;
    const std::uint32_t length = layout::length_of(entry.state);
    const ListHint* hint = length > kHinted ? hints_.find(offset, length) : nullptr;
    const ExtentAt tail = hint != nullptr ? hint->tail() : lookup::first_extent(entry.head);
    __builtin_prefetch(&region_.word(tail.offset), 1);
    if (hint == nullptr) return;
    __builtin_prefetch(&region_.word(tail.offset + ListExtent::bytes(length - tail.first)), 1);
    if (hint->index() != 0) __builtin_prefetch(&long_lists_[hint->index() - 1], 1);
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

/// The new head of a list that had one value or none.
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

ExtentAt ListWriter::find_tail(Offset offset, std::uint32_t length) const {
    ExtentAt tail = lookup::first_extent(region_.at<Entry>(offset).head);
    for_each_extent(region_, tail, length, [&](const ListExtent&, ExtentAt place) {
        tail = place;
        return false;
    });
    return tail;
}

/// Appends values to a list in extents: to the last extent as far as they fit, the others to a new one.
void ListWriter::extend(Offset offset, std::uint32_t length, std::span<const TermId> values) {
    ListHint* hint = length > kHinted ? hints_.find(offset, length) : nullptr;
    ExtentAt last = hint != nullptr ? hint->tail() : find_tail(offset, length);
    auto& extent = region_.at<ListExtent>(last.offset);
    const std::uint32_t used = length - last.first;
    const std::size_t fitting = std::min<std::size_t>(values.size(), extent.capacity - used);
    std::copy_n(values.begin(), fitting, extent.values() + used);
    if (const auto rest = values.subspan(fitting); !rest.empty()) {
        const std::uint64_t growth = std::clamp<std::uint64_t>(length / 2, 2, kMaxGrowth);
        last = {make_extent(std::max<std::uint64_t>(rest.size(), growth), rest), last.first + extent.capacity};
        publication_.store(extent.next, last.offset);
    }
    if (hint != nullptr)
        update_hint(*hint, length, last, values);
    else if (const auto longer = length + static_cast<std::uint32_t>(values.size()); longer > kHinted)
        hints_.put({offset, longer, last});
    hinted_ = true;
}

/// Updates the hint of a list with values that were appended after its first `length`.
void ListWriter::update_hint(ListHint& hint, std::uint32_t length, ExtentAt tail, std::span<const TermId> values) {
    const auto longer = length + static_cast<std::uint32_t>(values.size());
    const std::size_t number = hint.index();
    hint.move_tail(longer, tail);
    if (hint.filtered())
        for (const TermId value : values) hint.add(value);
    if (number == 0) return;
    LongList& list = long_lists_[number - 1];
    if (list.indexed != length || values.size() > kScanned) return;  // complete() adds them on demand
    for (std::uint32_t i = 0; i < values.size(); ++i)
        if (!layout::Removal::is(values[i])) list.others.insert(values[i], length + i);
    list.indexed = longer;
    list.indexed_to = tail;
    indexed_.push_back(number);
}

void ListWriter::append(Offset offset, std::span<const TermId> values, Snapshot snapshot, bool has_removals) {
    auto& entry = region_.at<Entry>(offset);
    const std::uint32_t length = layout::length_of(entry.state);
    const std::uint64_t longer = std::uint64_t{length} + values.size();
    if (longer >= kAbsent) throw LimitError("a vertex has more than 2^32 neighbours by one label");
    if (layout::is_extent(entry.head))
        extend(offset, length, values);
    else
        publication_.store(entry.head, make_first_extent(entry.head, values));
    const std::uint64_t state = layout::make_state(snapshot, static_cast<std::uint32_t>(longer));
    publication_.store(entry.state, has_removals ? state | layout::kHasRemovals : state);
}

void ListWriter::abandon() {
    if (hinted_) hints_.clear();
    for (const std::size_t number : indexed_) long_lists_[number - 1] = {};
    keep();
}

void ListWriter::forget(Offset offset) {
    hints_.forget(offset);
    if (const auto found = long_numbers_.find(offset); found != long_numbers_.end())
        long_lists_[found->second - 1] = {};
}

std::size_t ListWriter::bytes() const {
    constexpr std::size_t kNode = sizeof(Offset) + sizeof(std::size_t) + 2 * sizeof(void*);
    std::size_t bytes = hints_.bytes() + long_lists_.capacity() * sizeof(LongList) + long_numbers_.size() * kNode;
    for (const LongList& list : long_lists_) bytes += list.bytes();
    return bytes;
}

}  // namespace penstock
