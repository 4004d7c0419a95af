// The hash table of windows: groups of slots behind a few bytes that say what is in them. One comparison of those bytes
// finds a slot, so a look-up hardly ever branches on data: that, not cache misses, is what linear probing and its
// deletions cost in small windows (ADR 4 has the figures).
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "stream/large_pages.hpp"

namespace penstock {

/// Slot: trivially copyable, with `std::uint32_t hash() const`. The owner compares keys and keeps them distinct.
/// References to slots are valid until the next insert() or erase().
template <class Slot>
class HashGroups {
public:
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return groups_.capacity() * sizeof(Group); }

    /// Asks for the group's marks, which is all of the group where slots are small.
    void prefetch(std::uint32_t hash) const {
        if (!groups_.empty()) __builtin_prefetch(&groups_[home(hash)]);
    }
    /// Once the marks are there: asks for the slot itself, or the one that an insert would take.
    void prefetch_slot(std::uint32_t hash) const {
        if (groups_.empty()) return;
        const Group& group = groups_[home(hash)];
        const unsigned match = group.match(mark(hash));
        __builtin_prefetch(&group.slots[std::countr_zero(match != 0 ? match : group.match(0) | 1)]);
    }

    /// The slot with that hash for which same(slot) holds, or nullptr.
    template <class Same>
    const Slot* find(std::uint32_t hash, Same&& same) const {
        // Every group can have been passed by some slot: then a search ends after all of them.
        for (std::size_t tried = 0, at = home(hash); tried < groups_.size(); ++tried, at = (at + 1) & mask()) {
            const Group& group = groups_[at];
            for (unsigned match = group.match(mark(hash)); match != 0; match &= match - 1) {
                const Slot& slot = group.slots[std::countr_zero(match)];
                if (same(slot)) return &slot;
            }
            if (group.overflow == 0) break;
        }
        return nullptr;
    }
    template <class Same>
    Slot* find(std::uint32_t hash, Same&& same) {
        return const_cast<Slot*>(std::as_const(*this).find(hash, std::forward<Same>(same)));
    }

    /// Its key must not be there yet; `hash` is the slot's.
    void insert(std::uint32_t hash, const Slot& slot) {
        if (size_ >= groups_.size() * kFull) resize(groups_.empty() ? 1 : 2 * groups_.size());
        ++size_;
        put(hash, slot);
    }

    /// A slot that find() gave for this hash.
    void erase(std::uint32_t hash, const Slot* slot) {
        std::size_t at = home(hash);
        for (; !groups_[at].holds(slot); at = (at + 1) & mask()) groups_[at].passed(-1);
        groups_[at].marks[slot - groups_[at].slots] = 0;
        --size_;
        if (size_ < groups_.size() * kSparse && groups_.size() > 1) resize(groups_.size() / 2);
    }

    void reserve(std::size_t slots) {
        const std::size_t groups = std::bit_ceil(slots / kFull + 1);
        if (groups > groups_.size()) resize(groups);
    }

    void clear() {
        Groups().swap(groups_);
        size_ = 0;
    }

    template <class F>
    void each(F&& f) const {
        for (const Group& group : groups_) {
            for (unsigned used = group.used(); used != 0; used &= used - 1) f(group.slots[std::countr_zero(used)]);
        }
    }

    template <class F>
    void each(F&& f) {
        std::as_const(*this).each([&](const Slot& slot) { f(const_cast<Slot&>(slot)); });
    }

private:
    // Seven slots of 8 bytes fill a cache line. Larger slots are in other lines than the marks anyway; groups of
    // fourteen can be fuller, because their numbers of slots vary less.
    static constexpr std::size_t kSlots = sizeof(Slot) == 8 ? 7 : 14;
    static constexpr std::size_t kFull = kSlots == 7 ? 5 : 11;   // grows where groups hold more on average
    static constexpr std::size_t kSparse = kSlots == 7 ? 1 : 2;  // shrinks where they hold less

    struct alignas(kSlots == 7 ? 64 : 16) Group {
        std::uint8_t marks[kSlots] = {};  // 0 = free, else 128 + seven bits of the hash
        std::uint8_t overflow = 0;        // how many slots passed this group because it was full; stays at 255
        Slot slots[kSlots];

        unsigned match(std::uint8_t mark) const { return compare(mark); }
        unsigned used() const { return compare(0) ^ kAll; }
        bool holds(const Slot* slot) const {
            return !std::less<>()(slot, slots) && std::less<>()(slot, slots + kSlots);
        }
        void passed(int change) {
            if (overflow != 255) overflow = static_cast<std::uint8_t>(overflow + change);
        }

    private:
        static constexpr unsigned kAll = (1u << kSlots) - 1;
        unsigned compare(std::uint8_t with) const {
#ifdef __SSE2__
            const auto* const from = reinterpret_cast<const __m128i*>(marks);
            const __m128i key = _mm_set1_epi8(static_cast<char>(with));
            const __m128i all = kSlots == 7 ? _mm_loadl_epi64(from) : _mm_load_si128(from);
            return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(all, key))) & kAll;
#else
            unsigned equal = 0;
            for (unsigned slot = 0; slot < kSlots; ++slot) equal |= static_cast<unsigned>(marks[slot] == with) << slot;
            return equal;
#endif
        }
    };
    using Groups = std::vector<Group, LargePages<Group>>;

    static std::uint8_t mark(std::uint32_t hash) { return static_cast<std::uint8_t>(hash | 0x80); }
    std::size_t mask() const { return groups_.size() - 1; }
    std::size_t home(std::uint32_t hash) const { return (static_cast<std::uint64_t>(hash) << bits_) >> 32; }

    void put(std::uint32_t hash, const Slot& slot) {
        for (std::size_t at = home(hash);; at = (at + 1) & mask()) {
            Group& group = groups_[at];
            const unsigned free = group.match(0);
            if (free == 0) {
                group.passed(1);
                continue;
            }
            const int place = std::countr_zero(free);
            group.marks[place] = mark(hash);
            group.slots[place] = slot;
            return;
        }
    }

    void resize(std::size_t groups) {
        Groups old(groups);
        old.swap(groups_);
        bits_ = std::countr_zero(groups);
        for (const Group& group : old) {
            for (unsigned used = group.used(); used != 0; used &= used - 1) {
                const Slot& slot = group.slots[std::countr_zero(used)];
                put(slot.hash(), slot);
            }
        }
    }

    Groups groups_;
    std::size_t size_ = 0;
    int bits_ = 0;  // of the number of groups
};

/// A number under a hash; what it numbers is compared by the owner.
struct HashedNumber {
    std::uint32_t hashed = 0;
    std::uint32_t number = 0;
    std::uint32_t hash() const { return hashed; }
};

}  // namespace penstock
