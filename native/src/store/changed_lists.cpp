#include "store/changed_lists.hpp"

#include "store/lookup.hpp"

namespace penstock {

using layout::Entry;
using layout::Offset;
using layout::Removal;

/// Adds the published words that the index lacks.
void ChangedLists::complete(ChangedList& list, const Entry& entry) const {
    const std::uint32_t length = layout::length_of(entry.state);
    lookup::for_each_removal(region_, entry.head, list.length_, length, [&](TermId word, std::uint32_t position) {
        const bool restores = Removal::restores(word);
        list.places_[Removal::position(word)] = {position, restores};
        ++list.words_;
        if (restores)
            --list.absent_;
        else
            ++list.absent_;
    });
    list.length_ = length;
}

const ChangedList& ChangedLists::find(Offset offset) {
    const auto& entry = region_.at<Entry>(offset);
    if (layout::length_of(entry.state) > kCached && layout::has_removals(entry.state)) {
        ChangedList& list = long_[offset];
        complete(list, entry);
        return list;
    }
    short_.places_.clear();
    short_.length_ = short_.words_ = short_.absent_ = 0;
    if (layout::has_removals(entry.state)) complete(short_, entry);
    short_.length_ = layout::length_of(entry.state);
    return short_;
}

std::size_t ChangedLists::bytes() const {
    constexpr std::size_t kLinks = 2 * sizeof(void*);
    std::size_t bytes = long_.size() * (sizeof(Offset) + sizeof(ChangedList) + kLinks);
    for (const auto& [entry, list] : long_)
        bytes += list.places_.size() * (sizeof(std::uint32_t) + sizeof(ChangedList::Place) + kLinks);
    return bytes;
}

}  // namespace penstock
