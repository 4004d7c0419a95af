// The hash table of windows. A slot lives as long as its youngest record. Expiry finds the slot by this record, without
// the key of the slot.
//
// Slots lie in groups of twelve behind one cache line, which holds one byte of each slot's hash and the slots' records.
// A search compares all twelve at once, so it rarely branches on data. Such branches, not cache misses, dominated the
// cost of linear probing in small windows (ADR 4 gives the figures).
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "large_pages.hpp"
#include "stream/record_queue.hpp"

namespace penstock {

/// `Slot` is trivially copyable: the content of a slot besides its record; or void. The owner compares keys, ensures
/// that the keys are distinct, and calls leave() for a slot before the slot's record leaves the queue. Record ids
/// ascend from call to call.
template <class Slot>
class AgedGroups {
    static constexpr unsigned kSlots = 12;
    static constexpr bool kBare = std::is_void_v<Slot>;

    struct alignas(64) Head {
        std::uint8_t marks[kSlots] = {};  // 0 = free, else 128 + seven bits of the hash
        RecordId passed;  // youngest record of the slots that are in later groups because this group was full
        RecordId ids[kSlots];
    };
    struct Bare : Head {};
    template <class T>
    struct Filled : Head {
        T slots[kSlots];
    };
    using Group = std::conditional_t<kBare, Bare, Filled<std::conditional_t<kBare, char, Slot>>>;

public:
    /// The position of a slot; valid until the next find_or_take() or fit().
    class Place {
    public:
        Place() = default;
        Place(Group* group, unsigned slot) : group_(group), slot_(slot) {}
        explicit operator bool() const { return group_ != nullptr; }
        RecordId id() const { return group_->ids[slot_]; }
        auto& slot() const { return group_->slots[slot_]; }

    private:
        friend class AgedGroups;
        Group* group_ = nullptr;
        unsigned slot_ = 0;
    };

    std::size_t size() const { return size_; }
    std::size_t bytes() const { return groups_.capacity() * sizeof(Group); }

    /// Prefetches the line with the group's marks and records.
    void prefetch(std::uint32_t hash) const {
        if (count_ != 0) __builtin_prefetch(&groups_[home(hash)]);
    }
    /// Prefetches the slot with this hash, or the slot that would be taken. Must be called when the line of prefetch()
    /// is cached.
    void prefetch_slot(std::uint32_t hash) const {
        if (count_ == 0) return;
        const Group& group = groups_[home(hash)];
        const unsigned match = matches(group, mark(hash));
        __builtin_prefetch(&group.slots[std::countr_zero(match != 0 ? match : matches(group, kFree) | 1)]);
    }

    /// The slot with the given hash for which same(place) holds, or none.
    template <class Same>
    Place find(std::uint32_t hash, Held held, Same&& same) {
        // A slot can be in any later group if all groups before it were full, so only the number of groups bounds the
        // search.
        for (std::size_t tried = 0, at = home(hash); tried < count_; ++tried, at = next(at)) {
            Group& group = groups_[at];
            for (unsigned match = matches(group, mark(hash)); match != 0; match &= match - 1) {
                const Place place(&group, static_cast<unsigned>(std::countr_zero(match)));
                if (same(place)) return place;
            }
            if (!held.has(group.passed)) break;
        }
        return {};
    }

    /// As find(); if there is no such slot, takes one for the key, with the record `id`. The owner must overwrite its
    /// content. hash_of(place) returns the hash of any slot.
    struct Found {
        Place place;
        bool known;
    };
    template <class Same, class HashOf>
    Found find_or_take(std::uint32_t hash, RecordId id, Held held, Same&& same, HashOf&& hash_of) {
        if (const Place known = find(hash, held, same)) return {known, true};
        if (size_ >= count_ * kFull) resize(count_ + count_ / 2 + 1, held, hash_of);
        ++size_;
        return {put(hash, id, held), false};
    }

    /// Sets a younger record for a slot that find() returned for this hash.
    void renew(std::uint32_t hash, Place place, RecordId id) {
        for (std::size_t at = home(hash); &groups_[at] != place.group_; at = next(at)) groups_[at].passed = id;
        place.group_->ids[place.slot_] = id;
    }

    /// Frees the slot with the given hash and record. The record is about to leave the queue. The returned place can
    /// still be read. When the record has left, the table possibly needs fit().
    Place leave(std::uint32_t hash, RecordId id) {
        std::size_t at = home(hash);
        unsigned match = having(groups_[at], id);
        for (; match == 0; match = having(groups_[at], id)) at = next(at);
        const auto slot = static_cast<unsigned>(std::countr_zero(match));
        groups_[at].marks[slot] = kFree;
        --size_;
        return {&groups_[at], slot};
    }
    bool is_sparse() const { return count_ > 1 && size_ < count_ * kSparse; }
    template <class HashOf>
    void fit(Held held, HashOf&& hash_of) {
        const std::size_t groups = groups_for(2 * size_);
        if (groups < count_) resize(groups, held, hash_of);
    }

    template <class HashOf>
    void reserve(std::size_t slots, Held held, HashOf&& hash_of) {
        const std::size_t groups = groups_for(slots);
        if (groups > count_) resize(groups, held, hash_of);
    }

    void clear() {
        Groups().swap(groups_);
        count_ = size_ = 0;
    }

    /// Resets all ids that are not held. Record ids are modulo 2^32, so this must be called before an id recurs.
    void forget_old_ids(Held held) {
        const auto forget = [held](RecordId& id) {
            if (!held.has(id)) id = held.none();
        };
        for (Group& group : groups_) {
            forget(group.passed);
            for (RecordId& id : group.ids) forget(id);
        }
    }

    template <class F>
    void each(F&& f) {
        for (Group& group : groups_) {
            for (unsigned used = kAll & ~matches(group, kFree); used != 0; used &= used - 1) {
                f(Place(&group, static_cast<unsigned>(std::countr_zero(used))));
            }
        }
    }

private:
    static constexpr unsigned kAll = (1u << kSlots) - 1;
    static constexpr std::uint8_t kFree = 0;
    static constexpr std::size_t kFull = 7;    // the table grows if groups have more slots in use than this on average
    static constexpr std::size_t kSparse = 2;  // the table is too large if groups have fewer slots in use than this
    using Groups = std::vector<Group, LargePages<Group>>;

    static std::uint8_t mark(std::uint32_t hash) { return static_cast<std::uint8_t>(hash | 0x80); }
    static std::size_t groups_for(std::size_t slots) { return slots / kFull + 1; }
    std::size_t next(std::size_t at) const { return at + 1 < count_ ? at + 1 : 0; }
    std::size_t home(std::uint32_t hash) const { return (hash * static_cast<std::uint64_t>(count_)) >> 32; }

#ifdef __SSE2__
    static unsigned matches(const Head& group, std::uint8_t mark) {
        const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(group.marks));
        return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(mark))))) &
               kAll;
    }
    static unsigned having(const Head& group, RecordId id) {
        const __m128i sought = _mm_set1_epi32(static_cast<int>(id));
        const auto* const ids = reinterpret_cast<const __m128i*>(group.ids);
        const auto equal = [&](int four) { return _mm_cmpeq_epi32(_mm_load_si128(ids + four), sought); };
        const __m128i third = equal(2);
        const __m128i all = _mm_packs_epi16(_mm_packs_epi32(equal(0), equal(1)), _mm_packs_epi32(third, third));
        return static_cast<unsigned>(_mm_movemask_epi8(all)) & kAll;
    }
#else
    static unsigned matches(const Head& group, std::uint8_t mark) {
        unsigned equal = 0;
        for (unsigned slot = 0; slot < kSlots; ++slot)
            equal |= static_cast<unsigned>(group.marks[slot] == mark) << slot;
        return equal;
    }
    static unsigned having(const Head& group, RecordId id) {
        unsigned equal = 0;
        for (unsigned slot = 0; slot < kSlots; ++slot) equal |= static_cast<unsigned>(group.ids[slot] == id) << slot;
        return equal;
    }
#endif

    Place put(std::uint32_t hash, RecordId id, Held held) {
        for (std::size_t at = home(hash);; at = next(at)) {
            Group& group = groups_[at];
            const unsigned free = matches(group, kFree);
            if (free == 0) {
                if (!held.has(group.passed) || held.age(group.passed) > held.age(id)) group.passed = id;
                continue;
            }
            const auto slot = static_cast<unsigned>(std::countr_zero(free));
            group.marks[slot] = mark(hash);
            group.ids[slot] = id;
            return {&group, slot};
        }
    }

    template <class HashOf>
    [[gnu::noinline]] void resize(std::size_t groups, Held held, HashOf&& hash_of) {
        Group empty{};
        empty.passed = held.none();
        std::fill_n(empty.ids, kSlots, held.none());
        Groups old(groups, empty);
        old.swap(groups_);
        count_ = groups;
        for (Group& group : old) {
            for (unsigned used = kAll & ~matches(group, kFree); used != 0; used &= used - 1) {
                const Place from(&group, static_cast<unsigned>(std::countr_zero(used)));
                [[maybe_unused]] const Place to = put(hash_of(from), from.id(), held);
                if constexpr (!kBare) to.slot() = from.slot();
            }
        }
    }

    Groups groups_;
    std::size_t count_ = 0;  // of groups
    std::size_t size_ = 0;
};

}  // namespace penstock
