// The members of Store; private to store.cpp, bulk_load.cpp and checkpoint.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/change_log.hpp"
#include "store/history.hpp"
#include "store/labels.hpp"
#include "store/past_lists.hpp"
#include "store/shard.hpp"
#include "store/sort.hpp"
#include "store/store.hpp"
#include "store/store_commit.hpp"

namespace penstock {

inline constexpr std::size_t kMaxShards = 4096;

struct SavedStore;  // the saved form on disk: checkpoint.cpp
std::shared_ptr<SavedStore> new_saved_store();

struct Store::Impl {
    std::string directory;
    LabelTable labels;
    CommitHistory history;
    PastLists past;
    std::size_t all_shards = 1;                  // of the whole store
    std::vector<std::unique_ptr<Shard>> shards;  // the local ones, in order
    std::vector<const Shard*> by_number;         // all; nullptr: not local
    bool publish_logs = false;
    std::shared_ptr<SavedStore> saved = new_saved_store();

    std::vector<std::vector<Keyed>> by_shard;  // scratch: ends of the running commit
    bool loading = false;                      // a BulkLoad is open
    ChangeLog changes;                         // ends before the history, which its views release

    bool whole() const { return shards.size() == all_shards; }
    void add(Region region);
    void commit(Snapshot snapshot, std::span<const Edge> edges, CommitSource source, bool even_if_empty);
    void distribute(std::vector<Keyed>& ends) { distribute(ends, by_shard); }
    void distribute(std::vector<Keyed>& ends, std::vector<std::vector<Keyed>>& parts) const;
    void refuse_while_loading() const;         // DataError
    void check_next(Snapshot snapshot) const;  // DataError
    /// Adds edges to a commit and returns how many ends changed the graph. Works with all shards local, or some.
    std::size_t append(StoreCommit& commit, std::span<const Edge> edges);
    std::size_t append_whole(StoreCommit& commit, std::vector<Keyed>& ends);
    /// Records edges that a commit asserts or removes again. The ends are out-ends.
    void reassert(StoreCommit& commit, std::span<const Keyed> repeated) const;
    Changed commit_change(Snapshot snapshot, std::span<const Edge> removed, std::span<const Edge> added,
                          CommitSource source, bool even_if_empty);
    /// Consumes the out-ends of a commit's edges. Sets how many are only asserted or removed again.
    Changed change(StoreCommit& commit, std::vector<Keyed>& removed, std::vector<Keyed>& added,
                   std::size_t& reasserted);
    Changed change_part(StoreCommit& commit, std::vector<Keyed>& removed, std::vector<Keyed>& added,
                        std::size_t& reasserted);
    std::size_t append_part(StoreCommit& commit, std::vector<Keyed>& ends);
};

/// DataError or LimitError for an edge that cannot be stored.
void check_edge(const Edge& edge);

std::string region_path(const std::string& directory, std::size_t shard);

}  // namespace penstock
