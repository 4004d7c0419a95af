// The shard that holds a vertex's lists (docs/store-layout.md: hash(id) mod S, S fixed at creation).
#pragma once

#include <cstddef>

#include "store/layout.hpp"

namespace penstock {

/// The result is the same on every node and in every epoch, because the records of the log are partitioned by this
/// number.
constexpr std::size_t shard_number(TermId vertex, std::size_t shards) {
    return shards == 1 ? 0 : layout::reduce(mix(vertex + 0x9E3779B97F4A7C15ull), shards);
}

}  // namespace penstock
