// Order of the ends of a commit's edges.
#pragma once

#include <vector>

#include "store/shard.hpp"

namespace penstock {

/// Ascending by (vertex, label, value), each once.
void sort_ends(std::vector<Keyed>& ends);

}  // namespace penstock
