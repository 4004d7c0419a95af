// How often each value occurs in each group, for aggregates that rows can leave (ADR 78).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rdf/term.hpp"

namespace penstock::expr {

class CountedValues {
public:
    /// Adds `by` (1 or -1) and returns the count, which may be negative until all changes of a run have been made.
    std::int32_t add(std::uint32_t group, TermId id, std::int32_t by);
    /// Calls visit(id, count) for each value of the group that occurs.
    template <class Visit>
    void for_each(std::uint32_t group, Visit visit) const {
        if (group >= first_.size()) return;
        for (std::uint32_t at = first_[group]; at != 0; at = entries_[at - 1].next)
            if (entries_[at - 1].count > 0) visit(entries_[at - 1].id, entries_[at - 1].count);
    }
    std::size_t bytes() const {
        return entries_.capacity() * sizeof(Entry) + (slots_.capacity() + first_.capacity()) * sizeof(std::uint32_t);
    }

private:
    struct Entry {
        TermId id;
        std::uint32_t group;
        std::uint32_t next;  // of the group: number of an entry + 1; 0 = none
        std::int32_t count;
    };
    static constexpr std::size_t kFirstSize = 64;
    static std::uint64_t hash(std::uint32_t group, TermId id);
    void grow();
    void place(std::uint32_t entry);

    std::vector<Entry> entries_;
    std::vector<std::uint32_t> slots_;  // number of an entry + 1; 0 = free
    std::vector<std::uint32_t> first_;  // by group, as Entry::next
    std::size_t absent_ = 0;            // entries with count 0
};

}  // namespace penstock::expr
