#include "store/sort.hpp"

#include <algorithm>

namespace penstock {

void sort_ends(std::vector<Keyed>& ends) {
    std::sort(ends.begin(), ends.end());
    const auto same = [](const Keyed& a, const Keyed& b) { return a <=> b == 0; };
    ends.erase(std::unique(ends.begin(), ends.end(), same), ends.end());
}

}  // namespace penstock
