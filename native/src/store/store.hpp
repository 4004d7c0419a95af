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
    std::vector<std::uint32_t> own = {};               // numbers of the local shards; empty: all
    std::size_t reserve_bytes = std::size_t{1} << 36;  // address space per shard, not memory
    bool publish_logs = false;                         // into the regions, for readers in other processes
};

/// The effect of Store::change.
struct Changed {
    Snapshot snapshot = 0;                 // the latest one if nothing changed
    std::uint64_t added = 0, removed = 0;  // edges that were not stored before, or were
};

/// Protects what a reader in another process needs: the logs of every commit after `snapshot`, and the tables that were
/// current at that snapshot.
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
    /// an empty store build sorted base extents of exact size. Returns the snapshot's number; if no edge was new, the
    /// latest one (no number is used up).
    Snapshot commit(std::span<const Edge> edges, CommitSource source);
    Snapshot latest() const;

    /// Removes edges and adds others, as one snapshot. An edge that is in both is added. Readers of older snapshots
    /// continue to see what was removed. Its memory is reclaimed once no reader needs it (ADR 72); if the store
    /// publishes append logs, that of lists (ADR 105).
    Changed change(std::span<const Edge> removed, std::span<const Edge> added, CommitSource source);

    /// A commit whose number the caller chooses: latest() + 1, used even if nothing in it is new or belongs to a local
    /// shard, so that a snapshot number means the same on all nodes. Each shard detects duplicates by itself, because
    /// the other end of an edge may be on another node.
    void apply(Snapshot snapshot, std::span<const Edge> edges, CommitSource source);
    /// As apply(), for a commit that removes edges too. Counts the changed edges whose subject is local.
    Changed apply(Snapshot snapshot, std::span<const Edge> removed, std::span<const Edge> added, CommitSource source);

    /// Records that the stream has closed all batches up to `batch`, including those that absorbed nothing: Local_VTS.
    void set_vts(std::uint32_t stream, std::int64_t batch);

    /// Marks all regions retired: reads of other processes fail as "retired" from now on. The writer calls it after
    /// another process has taken over. The memory of this object stays valid until its destruction.
    void retire();

    /// The graph at the latest snapshot, without what the bounded streams committed after their bounds. The view holds
    /// a lease: the older state that it needs (append logs, old table generations) is retained until its destruction,
    /// which must precede the store's. Thread-safe.
    std::unique_ptr<Source> view(std::span<const StreamBound> bounds = {});

    /// The local part of the graph at a snapshot that the caller chooses, without the excluded commits (ascending).
    /// Only vertices of local shards can be looked up; others are a DataError. StorageError if the snapshot is not yet
    /// published or no longer readable. Otherwise as view().
    std::unique_ptr<Source> view_part(Snapshot snapshot, std::vector<Snapshot> excluded = {});

    /// What a view at an earlier moment would have shown, if keep() retains it: the commits up to `before`, and those
    /// of
    /// (`before`, `after`] that the bounds of their streams include. The bounds in `named` also hold for earlier
    /// commits. StorageError if it is not retained. Otherwise as view().
    std::unique_ptr<Source> view_past(Snapshot before, Snapshot after, std::span<const StreamBound> named,
                                      std::span<const StreamBound> others);
    /// Retains what view_past() needs of the commits after a snapshot, also in saved stores; nothing: no longer.
    void keep(std::optional<Snapshot> snapshot);

    /// A lease of `snapshot`, or of the latest snapshot if that is older. Must be destroyed before the store.
    /// StorageError if logs that it needs are already discarded. Thread-safe.
    std::unique_ptr<StoreLease> lease(Snapshot snapshot);

    /// Promises that no view will bound this stream below `batch`; older append logs may be discarded.
    void release(std::uint32_t stream, std::int64_t batch);

    std::uint64_t edge_count() const;   // distinct quads at the latest snapshot
    std::uint64_t used_bytes() const;   // of the regions: tables, records, lists
    std::uint64_t log_bytes() const;    // append logs retained for older readers
    std::uint64_t index_bytes() const;  // of the writer, outside of the regions: for duplicate detection in long lists

    /// Captures regions, labels and history as of now, for writing into `directory` while further commits run. If
    /// `previous` (it may equal `directory`) holds the last written capture or what open() read, only the changes since
    /// are captured and its files are linked; otherwise everything is. At most 256 MB are copied; regions beyond that
    /// are written before this returns. DataError if another capture exists. StorageError.
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
