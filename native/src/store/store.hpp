// The stored graph of one engine: labels, shards, snapshots. Papers: Wukong §4 (key-value store of a graph), Wukong+S
// §4.3 (bounded snapshot scalarization). Layout: DESIGN §4; docs/store-layout.md has ours with its measured reasons.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "source.hpp"
#include "store/commit.hpp"
#include "store/labels.hpp"

namespace penstock {

/// Commits are made by one thread at a time (the caller's lock); views are read from any thread without locks.
class Store {
public:
    /// Regions are files `directory/shard-<n>.region`. `reserve_bytes` is address space per shard, not memory.
    Store(const std::string& directory, std::size_t shards, std::size_t reserve_bytes);
    ~Store();

    LabelTable& labels();
    const std::string& directory() const;  // where the regions are; streams put theirs beside them
    std::size_t shard_count() const;
    std::size_t shard_of(TermId vertex) const;

    /// Adds edges (those already stored are skipped) and publishes them as one snapshot, visible at once or not at all.
    /// Large commits into an empty store build exact-size sorted base extents. Returns the snapshot's number; where
    /// nothing was new, the latest one (no snapshot is spent).
    Snapshot commit(std::span<const Edge> edges, CommitSource source);
    Snapshot latest() const;

    /// Records that the stream has closed all batches up to this one (also those that absorbed nothing): Local_VTS.
    void set_vts(std::uint32_t stream, std::int64_t batch);

    /// The graph at the latest snapshot, less what the bounded streams committed after their bounds. Holds a lease:
    /// what it needs of older state (append logs, old table generations) stays until it is destroyed, before the store.
    /// Thread-safe.
    std::unique_ptr<Source> view(std::span<const StreamBound> bounds = {});

    /// Nobody will ask for a bound of this stream below `batch` any more: append logs older than that may go.
    void release(std::uint32_t stream, std::int64_t batch);

    std::uint64_t edge_count() const;   // distinct quads at the latest snapshot
    std::uint64_t used_bytes() const;   // of the regions: tables, records, lists
    std::uint64_t log_bytes() const;    // append logs held for older readers
    std::uint64_t index_bytes() const;  // the writer's own, in no region: look-up of duplicates in long lists

    void save(const std::string& directory) const;  // regions, labels, snapshot: as of now; StorageError on failure
    static std::unique_ptr<Store> open(const std::string& saved, const std::string& directory,
                                       std::size_t reserve_bytes);

private:
    friend class BulkLoad;
    struct Impl;
    explicit Store(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
