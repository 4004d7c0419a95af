// One commit whose edges arrive sorted into bins and together exceed memory. Spark's bulk load uses it.
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
/// that sorts it: bins [shard * pieces, (shard + 1) * pieces) belong to the shard. The hash differs from the one that
/// chooses the shard; with the same hash, a shard's vertices would fall into few of its bins.
constexpr std::size_t bin_number(TermId vertex, std::size_t shards, std::size_t pieces) {
    const std::size_t shard = shard_number(vertex, shards);
    return shard * pieces + layout::reduce(mix(vertex ^ 0xD6E8FEB86659FD93ull), pieces);
}

/// How the edges of a load are partitioned, and which commit it is.
struct BulkOptions {
    std::size_t pieces = 1;
    std::size_t shards = 0;  // the number of shards that the bins were made for; 0: the store's own
    CommitSource source = {};
    /// The snapshot number if the caller chooses it, as for Store::apply: latest() + 1, used even if no edge is new.
    /// Only then may the store hold a part of the shards; it accepts the bins of those shards.
    std::optional<Snapshot> snapshot = {};
};

/// Accepts each edge twice: in the bin of its subject (out) and in the bin of its object (in). Each bin and direction
/// is passed in one call. Nothing is visible before publish(); destruction without it rolls back. No other commit may
/// run during its lifetime. Edges that are already stored are skipped; lists that begin here become base extents of
/// exact size.
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

    /// Makes everything visible as one snapshot. Returns its number, or the latest one if no edge was new and the
    /// caller did not choose the number. DataError if the store holds all shards and the two directions do not have the
    /// same number of new edges.
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
