// Orders of the ends of edges.
#pragma once

#include <vector>

#include "store/shard.hpp"

namespace penstock {

/// Ascending by (vertex, label, value), each once.
void sort_ends(std::vector<Keyed>& ends);

/// Ascending by (label, vertex, value), each once: the order of bulk files.
void sort_by_label(std::vector<Keyed>& ends);

}  // namespace penstock
