// Sort orders of edge ends.
#pragma once

#include <vector>

#include "store/shard.hpp"

namespace penstock {

/// Sorts ascending by (vertex, label, value) and removes duplicates.
void sort_ends(std::vector<Keyed>& ends);

/// Sorts ascending by (label, vertex, value) and removes duplicates: the order of bulk files.
void sort_by_label(std::vector<Keyed>& ends);

}  // namespace penstock
