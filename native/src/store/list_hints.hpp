// A cache of the shard's writer for lists that grow. A hint contains the position of a list's end, and a filter of the
// list's values. A list that grew edge by edge is a chain of extents, and each step along the chain is a cache miss. A
// hint is one cache line.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "store/layout.hpp"
#include "store/lookup.hpp"

namespace penstock {

/// A hint is valid only while its list has exactly `length` values.
class alignas(64) ListHint {
public:
    ListHint() = default;
    ListHint(layout::Offset entry, std::uint32_t length, lookup::ExtentAt tail)
        : entry_(entry), tail_(tail.offset), filtered_(false), tail_first_(tail.first), length_(length) {}

    layout::Offset entry() const { return entry_; }
    std::uint32_t length() const { return length_; }
    /// The extent with the list's last value.
    lookup::ExtentAt tail() const { return {tail_, tail_first_}; }
    void move_tail(std::uint32_t length, lookup::ExtentAt tail) {
        if (length > kMostFiltered && length_ <= kMostFiltered) {
            filtered_ = false;
            filter_[0] = 0;
        }
        length_ = length;
        tail_ = tail.offset;
        tail_first_ = tail.first;
    }

    /// Longer lists have no filter, but can have an index in the writer. The index has a number from 1. 0: no known
    /// index.
    static constexpr std::uint32_t kMostFiltered = 64;
    std::size_t index() const { return length_ > kMostFiltered ? filter_[0] : 0; }
    void set_index(std::size_t number) { filter_[0] = number; }

    // The filter is a Bloom filter with two bits per value. It is valid only once it covers all values of the list.
    bool filtered() const { return filtered_; }
    void set_filtered() { filtered_ = true; }
    void add(TermId value) {
        const Bits at = bits_of(value);
        filter_[at.first / 64] |= std::uint64_t{1} << at.first % 64;
        filter_[at.second / 64] |= std::uint64_t{1} << at.second % 64;
    }
    /// Whether the list possibly contains the value. If it does not contain the value, the result is false in 32 of 33
    /// cases for a list of 32 values, and in 9 of 10 cases for 64 values.
    bool may_hold(TermId value) const {
        const Bits at = bits_of(value);
        return (filter_[at.first / 64] >> at.first % 64 & filter_[at.second / 64] >> at.second % 64 & 1) != 0;
    }

private:
    static constexpr std::size_t kWords = 5;
    struct Bits {
        std::size_t first, second;
    };
    static Bits bits_of(TermId value) {
        const std::uint64_t hash = mix(value);
        return {(hash >> 32) * (kWords * 64) >> 32, (hash & 0xFFFFFFFF) * (kWords * 64) >> 32};
    }

    layout::Offset entry_ = 0;  // 0: empty
    std::uint64_t tail_ : 63 = 0;
    std::uint64_t filtered_ : 1 = 0;
    std::uint32_t tail_first_ = 0;
    std::uint32_t length_ = 0;
    std::array<std::uint64_t, kWords> filter_{};
};
static_assert(sizeof(ListHint) == 64);

/// Hints by the entry of their list, in a direct-mapped table. A new hint evicts the previous hint in the same place.
/// The table grows with the number of hints, to at most 4 MiB. An evicted hint costs only a walk along the list.
class ListHints {
public:
    void prefetch(layout::Offset entry) const {
        if (!places_.empty()) __builtin_prefetch(&places_[place_of(entry)], 1);
    }
    /// The hint of a list with `length` values; nullptr if there is no hint, or if the hint is out of date.
    ListHint* find(layout::Offset entry, std::uint32_t length) {
        if (places_.empty()) return nullptr;
        ListHint& hint = places_[place_of(entry)];
        return hint.entry() == entry && hint.length() == length ? &hint : nullptr;
    }
    ListHint& put(const ListHint& hint);
    void forget(layout::Offset entry) {
        if (places_.empty()) return;
        ListHint& hint = places_[place_of(entry)];
        if (hint.entry() == entry) hint = {entry, 0, {0, 0}};
    }
    void clear() {
        places_.clear();
        used_ = 0;
    }
    std::size_t bytes() const { return places_.capacity() * sizeof(ListHint); }

private:
    static constexpr std::size_t kFirstPlaces = 64, kMaxPlaces = std::size_t{1} << 16;

    std::size_t place_of(layout::Offset entry) const { return layout::reduce(mix(entry), places_.size()); }
    void grow();

    std::vector<ListHint> places_;
    std::size_t used_ = 0;
};

}  // namespace penstock
