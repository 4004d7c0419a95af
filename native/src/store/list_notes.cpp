#include "store/list_notes.hpp"

#include <algorithm>
#include <utility>

namespace penstock {

ListNote& ListNotes::put(const ListNote& note) {
    if (used_ * 2 >= places_.size() && places_.size() < kMaxPlaces) grow();
    ListNote& place = places_[place_of(note.entry())];
    if (place.entry() == 0) ++used_;
    place = note;
    return place;
}

void ListNotes::grow() {
    std::vector<ListNote> old(std::max(kFirstPlaces, places_.size() * 2));
    old.swap(places_);
    used_ = 0;
    for (const ListNote& note : old) {
        if (note.entry() == 0) continue;
        ListNote& place = places_[place_of(note.entry())];
        if (place.entry() == 0) ++used_;
        place = note;
    }
}

}  // namespace penstock
