// The writer's index of removal words. It shows which values of a list with removal words are in the list now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "store/layout.hpp"
#include "store/region.hpp"

namespace penstock {

/// The removal words of one published list.
class ChangedList {
public:
    struct Place {
        std::uint32_t last;  // position of the value, or of the last removal word that names it
        bool present;
    };
    /// The state of the value at a position.
    Place at(std::uint32_t position) const {
        const auto found = places_.find(position);
        return found == places_.end() ? Place{position, true} : found->second;
    }
    /// How many values the list has now.
    std::uint32_t values() const { return length_ - words_ - absent_; }

private:
    friend class ChangedLists;
    std::unordered_map<std::uint32_t, Place> places_;  // by the position that a removal word names
    std::uint32_t length_ = 0;                         // the part of the list that is covered
    std::uint32_t words_ = 0;                          // removal words
    std::uint32_t absent_ = 0;                         // removed values
};

/// Reads short lists again for each use, and caches long ones.
class ChangedLists {
public:
    explicit ChangedLists(const Region& region) : region_(region) {}

    /// Valid until the next call. Words of the running commit are not included.
    const ChangedList& find(layout::Offset entry);
    /// Must be called before the entry's memory is reused, and after the list was rewritten.
    void forget(layout::Offset entry) { long_.erase(entry); }
    std::size_t bytes() const;

private:
    static constexpr std::uint32_t kCached = 64;  // longer lists are cached

    void complete(ChangedList& list, const layout::Entry& entry) const;

    const Region& region_;
    ChangedList short_;
    std::unordered_map<layout::Offset, ChangedList> long_;  // by entry
};

}  // namespace penstock
