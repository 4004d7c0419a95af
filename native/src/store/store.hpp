// The stored graph of one engine: labels, shards, snapshots. Papers: Wukong §4 (key-value store of a graph), Wukong+S
// §4.3 (bounded snapshot scalarization). Layout: docs/store-layout.md, with its measured reasons in ADR 3.
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

/// What a store is made of. A node of a cluster keeps some of the shards (`own`), and publishes append logs.
struct StoreOptions {
    std::size_t shards = 1;
    std::vector<std::uint32_t> own = {};               // numbers of the shards that are here; empty: all
    std::size_t reserve_bytes = std::size_t{1} << 36;  // address space per shard, not memory
    bool publish_logs = false;                         // into the regions, for readers of other processes
};

/// Keeps what a reader elsewhere needs: logs of every commit after `snapshot`, and the tables that it began on.
class StoreLease {
public:
    virtual ~StoreLease() = default;
    virtual Snapshot snapshot() const = 0;
};

/// What a store was at a moment, on its way to the disk. Any thread; destroyed unwritten, nothing has happened.
class StoreCapture {
public:
    ~StoreCapture();
    /// Makes it last: once. StorageError: what was saved before still counts.
    void write();
    std::uint64_t changed_bytes() const;  // of the regions, and hence written, until write()

private:
    friend class Store;
    struct Impl;
    explicit StoreCapture(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Commits are made by one thread at a time (the caller's lock); views are read from any thread without locks.
class Store final : public Labelled {
public:
    /// Regions are files `directory/shard-<n>.region`, or memory of this process alone where `directory` is empty.
    /// `reserve_bytes` is address space per shard, not memory.
    Store(const std::string& directory, std::size_t shards, std::size_t reserve_bytes);
    Store(const std::string& directory, const StoreOptions& options);
    ~Store() override;

    LabelTable& labels() override;
    const std::string& directory() const;  // where the regions are; streams put theirs beside them
    std::size_t shard_count() const;
    std::size_t shard_of(TermId vertex) const;

    /// Adds edges (those already stored are skipped) and publishes them as one snapshot, visible at once or not at all.
    /// Large commits into an empty store build exact-size sorted base extents. Returns the snapshot's number; where
    /// nothing was new, the latest one (no snapshot is spent).
    Snapshot commit(std::span<const Edge> edges, CommitSource source);
    Snapshot latest() const;

    /// A commit whose number was given elsewhere: latest() + 1, also where nothing in it is new or belongs here, so
    /// that a snapshot is the same on all nodes. Each shard tests for duplicates on its own: the other end of an edge
    /// may be on another node.
    void apply(Snapshot snapshot, std::span<const Edge> edges, CommitSource source);

    /// Records that the stream has closed all batches up to this one (also those that absorbed nothing): Local_VTS.
    void set_vts(std::uint32_t stream, std::int64_t batch);

    /// Marks all regions retired: reads of other processes fail as "retired" from now on. The writer calls it when
    /// another process has taken over; this object's own memory lives until it is destroyed.
    void retire();

    /// The graph at the latest snapshot, less what the bounded streams committed after their bounds. Holds a lease:
    /// what it needs of older state (append logs, old table generations) stays until it is destroyed, before the store.
    /// Thread-safe.
    std::unique_ptr<Source> view(std::span<const StreamBound> bounds = {});

    /// What is here of the graph at a snapshot that was chosen elsewhere, less those commits (ascending): vertices of
    /// own shards can be looked up, others are a DataError. StorageError where the snapshot is not here yet, or cannot
    /// be read any more. Otherwise as view().
    std::unique_ptr<Source> view_part(Snapshot snapshot, std::vector<Snapshot> excluded = {});

    /// A lease of `snapshot`, or of the latest one where that is older. Destroyed before the store. StorageError where
    /// logs that it needs have gone. Thread-safe.
    std::unique_ptr<StoreLease> lease(Snapshot snapshot);

    /// Nobody will ask for a bound of this stream below `batch` any more: append logs older than that may go.
    void release(std::uint32_t stream, std::int64_t batch);

    std::uint64_t edge_count() const;   // distinct quads at the latest snapshot
    std::uint64_t used_bytes() const;   // of the regions: tables, records, lists
    std::uint64_t log_bytes() const;    // append logs held for older readers
    std::uint64_t index_bytes() const;  // the writer's own, in no region: look-up of duplicates in long lists

    /// Regions, labels, history as of now, to be written into `directory` beside further commits. Only what has changed
    /// since the last capture that was written, or since open(), where that is what lies in `previous` (which may be
    /// `directory`): its files are linked. Otherwise everything. At most 256 MB are copied: beyond, regions are written
    /// before this returns. One at a time: DataError. StorageError.
    std::unique_ptr<StoreCapture> capture(const std::string& directory, const std::string& previous) const;
    void save(const std::string& directory) const;  // everything, at once; StorageError on failure
    static std::unique_ptr<Store> open(const std::string& saved, const std::string& directory,
                                       std::size_t reserve_bytes);
    /// The same shards as saved; of the options only reserve_bytes and publish_logs count.
    static std::unique_ptr<Store> open(const std::string& saved, const std::string& directory,
                                       const StoreOptions& options);

private:
    friend class BulkLoad;
    struct Impl;
    explicit Store(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
