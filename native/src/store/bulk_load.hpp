// A commit whose edges arrive sorted into bins. Together, the edges can exceed the memory. Spark's bulk load uses this
// commit.
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

/// The bin of a vertex. Bins partition the vertices of a shard further, so that each bin fits the memory of the task
/// that sorts it: bins [shard * pieces, (shard + 1) * pieces) belong to the shard. The hash differs from the hash that
/// chooses the shard. With the same hash, the vertices of a shard would be in few of its bins.
constexpr std::size_t bin_number(TermId vertex, std::size_t shards, std::size_t pieces) {
    const std::size_t shard = shard_number(vertex, shards);
    return shard * pieces + layout::reduce(mix(vertex ^ 0xD6E8FEB86659FD93ull), pieces);
}

/// How the edges of a load are partitioned, and which commit it is.
struct BulkOptions {
    std::size_t pieces = 1;
    std::size_t shards = 0;  // the number of shards that the bins were made for; 0: the store's own
    CommitSource source = {};
    /// The snapshot number, if the caller chooses it. As for Store::apply, it must be latest() + 1, and it is used even
    /// if no edge is new. A store that holds only a part of the shards requires this number, and accepts only the bins
    /// of its shards.
    std::optional<Snapshot> snapshot = {};
};

/// Accepts each edge twice: in the bin of its subject (out) and in the bin of its object (in). Each bin and direction
/// is passed in one call. Nothing is visible before publish(). Destruction without publish() rolls back. During the
/// lifetime of this object, no other commit is allowed. Edges that are already stored are skipped. A list that begins
/// in this load gets a base extent of exact size.
class BulkLoad {
public:
    /// LimitError if the number of pieces is out of range. DataError if another load is open or the snapshot is not the
    /// next one.
    BulkLoad(Store& store, const BulkOptions& options);
    ~BulkLoad();
    BulkLoad(const BulkLoad&) = delete;
    BulkLoad& operator=(const BulkLoad&) = delete;

    /// Adds the ends of a bin in one direction, in any order; `ends` is consumed. DataError for a vertex of another
    /// bin, for a bin that was already added or whose shard is not in this store, and for a term that cannot be stored.
    void append(std::size_t bin, Dir dir, std::vector<Keyed>& ends);

    /// Makes everything visible as one snapshot. Returns the number of this snapshot. If no edge was new and the caller
    /// did not choose the number, returns the number of the latest snapshot. DataError if the store holds all shards
    /// and the two directions do not have the same number of new edges.
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
    std::vector<Keyed> fresh_, repeated_, own_;  // of the current bin
    std::uint64_t new_edges_[2] = {0, 0};
    std::uint64_t reasserted_ = 0;
};

}  // namespace penstock
