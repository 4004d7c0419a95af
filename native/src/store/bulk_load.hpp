// One commit whose edges come sorted into bins, too many to hold in memory at once: the way in for Spark's bulk load.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/layout.hpp"
#include "store/shard.hpp"
#include "store/sharding.hpp"
#include "store/store.hpp"

namespace penstock {

/// A shard's vertices, dealt out once more, so that a bin fits the memory of who sorts it: bins [shard * pieces, (shard
/// + 1) * pieces) are that shard's. Another mixing than the shard's own, or all of a shard would fall into few pieces.
constexpr std::size_t bin_number(TermId vertex, std::size_t shards, std::size_t pieces) {
    const std::size_t shard = shard_number(vertex, shards);
    return shard * pieces + layout::reduce(mix(vertex ^ 0xD6E8FEB86659FD93ull), pieces);
}

/// Takes each edge twice: in the bin of its subject (out) and in the bin of its object (in), each bin and direction at
/// once. Nothing can be seen before publish(); going without it leaves nothing. No other commit while it lives.
/// Edges that are stored already are left out; lists that begin here become base extents of exact size.
class BulkLoad {
public:
    /// LimitError where there is no such number of pieces, DataError where another load is open.
    BulkLoad(Store& store, std::size_t pieces);
    ~BulkLoad();
    BulkLoad(const BulkLoad&) = delete;
    BulkLoad& operator=(const BulkLoad&) = delete;

    /// The ends of a bin in one direction, in any order; used up. DataError for a vertex of another bin, for a bin that
    /// came before, and for what is no term that can be stored.
    void append(std::size_t bin, Dir dir, std::vector<Keyed>& ends);

    /// Makes all visible as one snapshot; returns its number (the latest one where nothing was new). DataError where
    /// the two directions do not hold the same number of new edges.
    Snapshot publish();

private:
    void close();

    Store& store_;
    std::size_t pieces_;
    Snapshot latest_;
    bool open_ = true;
    std::vector<bool> seen_[2];  // by bin
    std::vector<Keyed> fresh_, repeated_, ignored_;
    std::uint64_t new_edges_[2] = {0, 0};
};

}  // namespace penstock
