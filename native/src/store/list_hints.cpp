#include "store/list_hints.hpp"

#include <algorithm>
#include <utility>

namespace penstock {

ListHint& ListHints::put(const ListHint& hint) {
    if (used_ * 2 >= places_.size() && places_.size() < kMaxPlaces) grow();
    ListHint& place = places_[place_of(hint.entry())];
    if (place.entry() == 0) ++used_;
    place = hint;
    return place;
}

void ListHints::grow() {
    std::vector<ListHint> old(std::max(kFirstPlaces, places_.size() * 2));
    old.swap(places_);
    used_ = 0;
    for (const ListHint& hint : old) {
        if (hint.entry() == 0) continue;
        ListHint& place = places_[place_of(hint.entry())];
        if (place.entry() == 0) ++used_;
        place = hint;
    }
}

}  // namespace penstock
