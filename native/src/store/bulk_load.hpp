// One commit whose edges come sorted into bins, too many to hold in memory at once: the way in for Spark's bulk load.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/layout.hpp"
#include "store/shard.hpp"
#include "store/sharding.hpp"
#include "store/store.hpp"
#include "store/store_commit.hpp"

namespace penstock {

/// A shard's vertices, dealt out once more, so that a bin fits the memory of who sorts it: bins [shard * pieces, (shard
/// + 1) * pieces) are that shard's. Another mixing than the shard's own, or all of a shard would fall into few pieces.
constexpr std::size_t bin_number(TermId vertex, std::size_t shards, std::size_t pieces) {
    const std::size_t shard = shard_number(vertex, shards);
    return shard * pieces + layout::reduce(mix(vertex ^ 0xD6E8FEB86659FD93ull), pieces);
}

/// How a load was dealt out, and which commit it is.
struct BulkOptions {
    std::size_t pieces = 1;
    std::size_t shards = 0;  // that its bins were made for; 0: the store's own
    CommitSource source = {};
    /// Given elsewhere, as for Store::apply: latest() + 1, spent also where nothing is new. The store may be a part
    /// then, and takes the bins of its own shards.
    std::optional<Snapshot> snapshot = {};
};

/// Takes each edge twice: in the bin of its subject (out) and in the bin of its object (in), each bin and direction at
/// once. Nothing can be seen before publish(); going without it leaves nothing. No other commit while it lives.
/// Edges that are stored already are left out; lists that begin here become base extents of exact size.
class BulkLoad {
public:
    /// LimitError where there is no such number of pieces, DataError where another load is open or the snapshot is not
    /// the next one.
    BulkLoad(Store& store, const BulkOptions& options);
    ~BulkLoad();
    BulkLoad(const BulkLoad&) = delete;
    BulkLoad& operator=(const BulkLoad&) = delete;

    /// The ends of a bin in one direction, in any order; used up. DataError for a vertex of another bin, for a bin that
    /// came before or whose shard is not here, and for what is no term that can be stored.
    void append(std::size_t bin, Dir dir, std::vector<Keyed>& ends);

    /// Makes all visible as one snapshot; returns its number (the latest one where nothing was new and the number was
    /// not given). DataError where the whole store is here and the two directions do not hold the same number of new
    /// edges.
    Snapshot publish();

private:
    void check(std::size_t bin, std::span<const Keyed> ends) const;
    void append(Shard& shard, Dir dir, std::vector<Keyed>& ends);
    void close();

    Store& store_;
    BulkOptions options_;
    Snapshot latest_;
    std::optional<StoreCommit> commit_;          // until it is published or rolled back
    std::vector<bool> seen_[2];                  // by bin
    std::vector<Keyed> fresh_, repeated_, own_;  // of the bin that is taken
    std::uint64_t new_edges_[2] = {0, 0};
    std::uint64_t reasserted_ = 0;
};

}  // namespace penstock
