// One commit to the local shards, from its first edge to its publication.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "store/history.hpp"
#include "store/shard.hpp"

namespace penstock {

/// A running commit. Readers see nothing of it before publish(), which makes all of it visible at once. Destruction
/// without publish() rolls back, and every shard is as before. A store runs one commit at a time.
class StoreCommit {
public:
    /// Begins the commit in every shard. `shards` and `history` must outlive it. With `logs_in_regions` its append logs
    /// also go into the regions, for readers in other processes.
    StoreCommit(std::span<const std::unique_ptr<Shard>> shards, CommitHistory& history, Snapshot snapshot,
                CommitSource source, bool logs_in_regions);
    ~StoreCommit();
    StoreCommit(const StoreCommit&) = delete;
    StoreCommit& operator=(const StoreCommit&) = delete;

    /// Adds ends of one direction, ascending by (vertex, label, value) without repetition. Ends that are already stored
    /// are skipped; the others are appended to `fresh`. `repeated` receives stored ends that only one commit contains,
    /// if a reader of this commit may exclude that one: they require reassert().
    void append_fresh(Shard& shard, Dir dir, std::span<const Keyed> ends, std::vector<Keyed>& fresh,
                      std::vector<Keyed>& repeated);
    /// Adds ends that are known to be new.
    void append_new(Shard& shard, Dir dir, std::span<const Keyed> ends);
    /// Adds ends and removes others, both as append_fresh(). No end is in both.
    void change(Shard& shard, Dir dir, std::span<const Keyed> added, std::span<const Keyed> removed,
                const Effects& effects);
    /// Records that this commit asserts a stored end again, or removes a removed one (see Reassertion).
    void reassert(Shard& shard, Dir dir, const Keyed& end);

    /// Makes the commit the latest snapshot, on all shards together. LimitError or StorageError if a region is full;
    /// the destructor then rolls back.
    void publish();

private:
    void compact() const;

    std::span<const std::unique_ptr<Shard>> shards_;
    CommitHistory& history_;
    Snapshot snapshot_;
    CommitSource source_;
    bool logs_in_regions_;
    bool open_ = true;
};

}  // namespace penstock
