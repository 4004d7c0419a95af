// How often each value occurs in each group, for aggregates from which rows can be removed (ADR 78).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "large_pages.hpp"
#include "rdf/term.hpp"

namespace penstock::expr {

class CountedValues {
public:
    /// Adds `by` (1 or -1) and returns the count, which may be negative until all changes of a run have been made.
    std::int32_t add(std::uint32_t group, TermId id, std::int32_t by);
    /// Prefetches the memory that the next calls of add() read. Must be called before each of the `n` calls. `i`: the
    /// number of the call, from 0. group(j) and id(j) return the arguments of call j.
    template <class Group, class Id>
    [[gnu::always_inline]] void look_ahead(std::size_t i, std::size_t n, Group group, Id id) const {
        if (entries_.size() < kCached) return;
        if (i + kAhead < n) __builtin_prefetch(&slots_[place_of(hash(group(i + kAhead), id(i + kAhead)))]);
        if (const std::size_t next = i + kAhead / 2; next < n) prefetch_entry(hash(group(next), id(next)));
    }
    /// Calls visit(id, count) for each value of the group that occurs.
    template <class Visit>
    void for_each(std::uint32_t group, Visit visit) const {
        if (group >= first_.size()) return;
        for (std::uint32_t at = first_[group]; at != 0; at = entries_[at - 1].next)
            if (entries_[at - 1].count > 0) visit(entries_[at - 1].id, entries_[at - 1].count);
    }
    std::size_t bytes() const {
        return entries_.capacity() * sizeof(Entry) + slots_.capacity() * sizeof(Slot) +
               first_.capacity() * sizeof(std::uint32_t);
    }

private:
    struct Entry {
        TermId id;
        std::uint32_t group;
        std::uint32_t next;  // of the group: number of an entry + 1; 0 = none
        std::int32_t count;
    };
    struct Slot {
        std::uint32_t number = 0;  // of an entry + 1; 0 = free
        std::uint32_t tag = 0;     // of the entry's hash, so that most other entries are not read
    };
    static constexpr std::size_t kFirstSize = 64;
    static constexpr std::size_t kAhead = 16;                     // calls whose lines are prefetched
    static constexpr std::size_t kCached = std::size_t{1} << 13;  // entries of a table that fits the L2 cache
    static std::uint64_t hash(std::uint32_t group, TermId id) {
        std::uint64_t out = (id ^ (group * 0x9E3779B97F4A7C15ull)) * 0xFF51AFD7ED558CCDull;
        out ^= out >> 32;
        return out * 0xC4CEB9FE1A85EC53ull;
    }
    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }
    std::size_t place_of(std::uint64_t hash) const { return hash >> 20 & (slots_.size() - 1); }
    std::size_t after(std::size_t place) const { return (place + 1) & (slots_.size() - 1); }
    [[gnu::always_inline]] void prefetch_entry(std::uint64_t hash) const {
        const Slot& slot = slots_[place_of(hash)];
        if (slot.number != 0 && slot.tag == tag_of(hash)) __builtin_prefetch(&entries_[slot.number - 1], 1);
    }
    void grow();
    void place(std::uint32_t entry);

    std::vector<Entry, LargePages<Entry>> entries_;
    std::vector<Slot, LargePages<Slot>> slots_;
    std::vector<std::uint32_t> first_;  // by group, as Entry::next
    std::size_t absent_ = 0;            // entries with count 0
};

}  // namespace penstock::expr
