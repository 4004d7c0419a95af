// The hash table of windows: groups of fourteen slots behind sixteen bytes that say what is in them. One comparison of
// those bytes finds a slot, so a look-up hardly ever branches on data: that, not cache misses, is what linear probing
// and its deletions cost in small windows (ADR 4 has the figures).
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

/// Slot: trivially copyable, with `std::uint32_t hash() const`. The owner compares keys and keeps them distinct.
/// References to slots are valid until the next insert() or erase().
template <class Slot>
class HashGroups {
public:
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return groups_.capacity() * sizeof(Group); }

    void prefetch(std::uint32_t hash) const {
        if (groups_.empty()) return;
        const char* const group = reinterpret_cast<const char*>(&groups_[home(hash)]);
        __builtin_prefetch(group);
        if constexpr (sizeof(Group) <= 128) __builtin_prefetch(group + 64);
    }

    /// Once prefetch() has brought the group's marks: asks for the slot itself, or the one that an insert would take.
    void prefetch_slot(std::uint32_t hash) const {
        if (groups_.empty()) return;
        const Group& group = groups_[home(hash)];
        const unsigned match = group.match(mark(hash));
        __builtin_prefetch(&group.slots[std::countr_zero(match != 0 ? match : group.match(0) | 1)]);
    }

    /// The slot with that hash for which same(slot) holds, or nullptr.
    template <class Same>
    const Slot* find(std::uint32_t hash, Same&& same) const {
        if (groups_.empty()) return nullptr;
        for (std::size_t at = home(hash);; at = (at + 1) & mask()) {
            const Group& group = groups_[at];
            for (unsigned match = group.match(mark(hash)); match != 0; match &= match - 1) {
                const Slot& slot = group.slots[std::countr_zero(match)];
                if (same(slot)) return &slot;
            }
            if (group.overflow == 0) return nullptr;
        }
    }
    template <class Same>
    Slot* find(std::uint32_t hash, Same&& same) {
        return const_cast<Slot*>(std::as_const(*this).find(hash, std::forward<Same>(same)));
    }

    /// Its key must not be there yet.
    Slot& insert(const Slot& slot) {
        if (size_ >= groups_.size() * kFull) resize(groups_.empty() ? 1 : 2 * groups_.size());
        ++size_;
        return put(slot);
    }

    /// The slot for which same(slot) holds must be there.
    template <class Same>
    void erase(std::uint32_t hash, Same&& same) {
        std::size_t at = home(hash);
        while (!groups_[at].remove(mark(hash), same)) {
            groups_[at].passed(-1);
            at = (at + 1) & mask();
        }
        --size_;
        if (size_ < groups_.size() * kSparse && groups_.size() > 1) resize(groups_.size() / 2);
    }

    void reserve(std::size_t slots) {
        const std::size_t groups = std::bit_ceil(slots / kFull + 1);
        if (groups > groups_.size()) resize(groups);
    }

    void clear() {
        std::vector<Group>().swap(groups_);
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
    static constexpr std::size_t kSlots = 14;
    static constexpr std::size_t kFull = 11;   // grows where groups hold more on average
    static constexpr std::size_t kSparse = 2;  // shrinks where they hold less

    // Groups of small slots fill two cache lines exactly.
    struct alignas(sizeof(Slot) == 8 ? 64 : 16) Group {
        std::uint8_t marks[kSlots] = {};  // 0 = free, else 128 + seven bits of the hash
        std::uint8_t overflow = 0;        // how many slots passed this group because it was full; stays at 255
        std::uint8_t unused = 0;
        Slot slots[kSlots];

        unsigned match(std::uint8_t mark) const { return compare(mark) & kAll; }
        unsigned used() const { return compare(0) ^ kAll; }
        void passed(int change) {
            if (overflow != 255) overflow = static_cast<std::uint8_t>(overflow + change);
        }
        template <class Same>
        bool remove(std::uint8_t mark, Same&& same) {
            for (unsigned found = match(mark); found != 0; found &= found - 1) {
                const int slot = std::countr_zero(found);
                if (!same(slots[slot])) continue;
                marks[slot] = 0;
                return true;
            }
            return false;
        }

    private:
        static constexpr unsigned kAll = (1u << kSlots) - 1;
        unsigned compare(std::uint8_t with) const {
#ifdef __SSE2__
            const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(marks));
            return static_cast<unsigned>(
                       _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(with))))) &
                   kAll;
#else
            unsigned equal = 0;
            for (unsigned slot = 0; slot < kSlots; ++slot) equal |= static_cast<unsigned>(marks[slot] == with) << slot;
            return equal;
#endif
        }
    };

    static std::uint8_t mark(std::uint32_t hash) { return static_cast<std::uint8_t>(hash | 0x80); }
    std::size_t mask() const { return groups_.size() - 1; }
    std::size_t home(std::uint32_t hash) const { return (static_cast<std::uint64_t>(hash) << bits_) >> 32; }

    Slot& put(const Slot& slot) {
        for (std::size_t at = home(slot.hash());; at = (at + 1) & mask()) {
            Group& group = groups_[at];
            const unsigned free = group.match(0);
            if (free == 0) {
                group.passed(1);
                continue;
            }
            const int place = std::countr_zero(free);
            group.marks[place] = mark(slot.hash());
            return group.slots[place] = slot;
        }
    }

    void resize(std::size_t groups) {
        std::vector<Group> old(groups);
        old.swap(groups_);
        bits_ = std::countr_zero(groups);
        for (const Group& group : old) {
            for (unsigned used = group.used(); used != 0; used &= used - 1) put(group.slots[std::countr_zero(used)]);
        }
    }

    std::vector<Group> groups_;
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
