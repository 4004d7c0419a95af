#include "store/store_commit.hpp"

#include <utility>

namespace penstock {

StoreCommit::StoreCommit(std::span<const std::unique_ptr<Shard>> shards, CommitHistory& history, Snapshot snapshot,
                         CommitSource source, bool logs_in_regions)
    : shards_(shards), history_(history), snapshot_(snapshot), source_(source), logs_in_regions_(logs_in_regions) {
    for (const auto& shard : shards_) shard->begin(snapshot, source, logs_in_regions);
}

StoreCommit::~StoreCommit() {
    if (!open_) return;
    for (const auto& shard : shards_) shard->abandon();
}

void StoreCommit::append_fresh(Shard& shard, Dir dir, std::span<const Keyed> ends, std::vector<Keyed>& fresh,
                               std::vector<Keyed>& repeated) {
    shard.append(dir, ends, &fresh, &repeated);
}

void StoreCommit::append_new(Shard& shard, Dir dir, std::span<const Keyed> ends) {
    shard.append(dir, ends, nullptr, nullptr);
}

void StoreCommit::change(Shard& shard, Dir dir, std::span<const Keyed> added, std::span<const Keyed> removed,
                         const Effects& effects) {
    shard.change(dir, added, removed, effects);
}

void StoreCommit::reassert(Shard& shard, Dir dir, const Keyed& end) { shard.reassert(dir, end); }

void StoreCommit::publish() {
    for (const auto& shard : shards_) shard->prepare();
    const auto store_words = [&] {
        for (const auto& shard : shards_) shard->publish();
        open_ = false;
    };
    if (!history_.can_be_excluded(source_) && history_.publish_unlogged(snapshot_, store_words)) {
        for (const auto& shard : shards_) shard->skip_log();
        if (!logs_in_regions_) compact();
        return;
    }
    auto record = std::make_unique<CommitRecord>(CommitRecord{snapshot_, source_, {}});
    for (const auto& shard : shards_) {
        record->logs.push_back(shard->make_log());
        if (logs_in_regions_) shard->publish_log(record->logs.back());
    }
    history_.add(std::move(record));
    store_words();
    history_.publish(snapshot_, source_);
    if (!logs_in_regions_) compact();
}

void StoreCommit::compact() const {
    for (const auto& shard : shards_) shard->compact();
}

}  // namespace penstock
