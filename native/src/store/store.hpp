// The stored graph of one engine: labels, shards, snapshots. Papers: Wukong §4 (key-value store of a graph), Wukong+S
// §4.3 (bounded snapshot scalarization). Layout: docs/store-layout.md, with its measured reasons in ADR 3.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "source.hpp"
#include "store/commit.hpp"
#include "store/labels.hpp"

namespace penstock {

/// The configuration of a store. A node of a cluster holds some of the shards (`own`) and publishes append logs.
struct StoreOptions {
    std::size_t shards = 1;
    std::vector<std::uint32_t> own = {};               // numbers of the local shards; empty: all shards
    std::size_t reserve_bytes = std::size_t{1} << 36;  // address space per shard, not memory
    bool publish_logs = false;                         // into the regions, for readers in other processes
};

/// The effect of Store::change.
struct Changed {
    Snapshot snapshot = 0;                 // the latest one if nothing changed
    std::uint64_t added = 0, removed = 0;  // added: edges that were not stored before; removed: edges that were stored
};

/// Protects the memory that a reader in another process needs: the logs of all commits after `snapshot`, and the tables
/// that were current at that snapshot.
class StoreLease {
public:
    virtual ~StoreLease() = default;
    virtual Snapshot snapshot() const = 0;
};

/// A store's state at a moment, for write() to disk. Thread-safe. Destruction without write() discards it.
class StoreCapture {
public:
    ~StoreCapture();
    /// Makes the state durable. May be called once. After a StorageError the previously saved state remains valid.
    void write();
    std::uint64_t changed_bytes() const;  // of the regions: the amount that write() writes

private:
    friend class Store;
    struct Impl;
    explicit StoreCapture(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Commits require external synchronisation: one at a time. Views may be read from any thread without locks.
class Store final : public Labelled {
public:
    /// Regions are files `directory/shard-<n>.region`, or anonymous memory if `directory` is empty. `reserve_bytes` is
    /// address space per shard, not memory.
    Store(const std::string& directory, std::size_t shards, std::size_t reserve_bytes);
    Store(const std::string& directory, const StoreOptions& options);
    ~Store() override;

    LabelTable& labels() override;
    const std::string& directory() const;  // of the regions; streams put their files there too
    std::size_t shard_count() const;
    std::size_t shard_of(TermId vertex) const;

    /// Adds edges (those already stored are skipped) and publishes them atomically as one snapshot. Large commits into
    /// an empty store build sorted base extents of exact size. Returns the number of the new snapshot. If no edge was
    /// new, no number is used, and the result is the number of the latest snapshot.
    Snapshot commit(std::span<const Edge> edges, CommitSource source);
    Snapshot latest() const;

    /// Removes edges and adds others, as one snapshot. An edge that is in both is added. Readers of older snapshots
    /// continue to see what was removed. The memory is reclaimed when no reader needs it any more (ADR 72). If the
    /// store publishes append logs, only the memory of lists is reclaimed (ADR 105).
    Changed change(std::span<const Edge> removed, std::span<const Edge> added, CommitSource source);

    /// A commit whose number the caller chooses. The number must be latest() + 1. It is used even if no edge is new or
    /// belongs to a local shard, so that a snapshot number means the same on all nodes. Each shard detects duplicates
    /// separately, because the other end of an edge can be on another node.
    void apply(Snapshot snapshot, std::span<const Edge> edges, CommitSource source);
    /// As apply(), for a commit that removes edges too. Counts the changed edges whose subject is local.
    Changed apply(Snapshot snapshot, std::span<const Edge> removed, std::span<const Edge> added, CommitSource source);

    /// Records in the Local_VTS that the stream has closed all batches up to and including `batch`, also batches
    /// without absorbed tuples.
    void set_vts(std::uint32_t stream, std::int64_t batch);

    /// Marks all regions as retired. From now on, reads by other processes fail with the reason "retired". The writer
    /// calls it after another process has taken over. The memory of this object stays valid until its destruction.
    void retire();

    /// The graph at the latest snapshot, without the commits of the bounded streams after their bounds. The view holds
    /// a lease, which retains the older state that the view needs (append logs, old table generations). The view must
    /// be destroyed before the store. Thread-safe.
    std::unique_ptr<Source> view(std::span<const StreamBound> bounds = {});

    /// The local part of the graph at a snapshot that the caller chooses, without the excluded commits (ascending).
    /// Only vertices of local shards can be looked up; others are a DataError. StorageError if the snapshot is not yet
    /// published or no longer readable. Otherwise as view().
    std::unique_ptr<Source> view_part(Snapshot snapshot, std::vector<Snapshot> excluded = {});

    /// The view at an earlier moment, if keep() retains its commits. It contains the commits up to and including
    /// `before`, and the commits of (`before`, `after`] that the bounds of their streams include. The bounds in `named`
    /// also apply to earlier commits. StorageError if a commit is not retained. Otherwise as view().
    std::unique_ptr<Source> view_past(Snapshot before, Snapshot after, std::span<const StreamBound> named,
                                      std::span<const StreamBound> others);
    /// Retains the commits after a snapshot for view_past(), also in saved stores. nullopt: retains no commits any
    /// more.
    void keep(std::optional<Snapshot> snapshot);

    /// A lease of `snapshot`, or of the latest snapshot if the latest snapshot is older. Must be destroyed before the
    /// store. StorageError if logs that it needs are already discarded. Thread-safe.
    std::unique_ptr<StoreLease> lease(Snapshot snapshot);

    /// Promises that no later view has a bound of this stream before `batch`. The store can then discard older append
    /// logs.
    void release(std::uint32_t stream, std::int64_t batch);

    std::uint64_t edge_count() const;   // distinct quads at the latest snapshot
    std::uint64_t used_bytes() const;   // of the regions: tables, records, lists
    std::uint64_t log_bytes() const;    // append logs retained for older readers
    std::uint64_t index_bytes() const;  // of the writer, outside of the regions: for duplicate detection in long lists

    /// Captures regions, labels and history as of now, for writing into `directory` while further commits run.
    /// `previous` can be the same directory. If `previous` contains the last written capture, or the files that open()
    /// has read, only the changes since then are captured, and the files in `previous` are linked. Otherwise,
    /// everything is captured. At most 256 MB are copied to memory. Further regions are written before this call
    /// returns. DataError if another capture exists. StorageError.
    std::unique_ptr<StoreCapture> capture(const std::string& directory, const std::string& previous) const;
    void save(const std::string& directory) const;  // captures and writes everything; StorageError
    static std::unique_ptr<Store> open(const std::string& saved, const std::string& directory,
                                       std::size_t reserve_bytes);
    /// Opens the shards as saved. Of the options only reserve_bytes and publish_logs apply.
    static std::unique_ptr<Store> open(const std::string& saved, const std::string& directory,
                                       const StoreOptions& options);

private:
    friend class BulkLoad;
    struct Impl;
    explicit Store(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
