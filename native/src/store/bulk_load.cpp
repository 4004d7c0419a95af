#include "store/bulk_load.hpp"

#include <string>

#include "errors.hpp"
#include "store/store_impl.hpp"

namespace penstock {

namespace {
constexpr std::size_t kMaxPieces = 1u << 16;
}

BulkLoad::BulkLoad(Store& store, const BulkOptions& options)
    : store_(store), options_(options), latest_(store.latest()) {
    Store::Impl& impl = *store.impl_;
    if (options_.shards == 0) options_.shards = impl.all_shards;
    if (options_.pieces == 0 || options_.pieces > kMaxPieces) throw LimitError("a shard's load has 1 to 65536 pieces");
    if (options_.shards > kMaxShards) throw LimitError("a load is made for 1 to 4096 shards");
    if (latest_ >= kMaxSnapshot) throw LimitError("snapshot numbers are used up");
    if (!options_.snapshot && !impl.whole()) throw Error("a part of a store cannot give loads their numbers");
    if (options_.snapshot.value_or(latest_ + 1) != latest_ + 1)
        throw DataError("load " + std::to_string(*options_.snapshot) + " cannot follow " + std::to_string(latest_));
    impl.refuse_while_loading();
    for (auto& seen : seen_) seen.resize(options_.shards * options_.pieces);
    commit_.emplace(impl.shards, impl.history, latest_ + 1, options_.source, impl.publish_logs);
    impl.loading = true;
}

BulkLoad::~BulkLoad() {
    if (commit_) close();
}

void BulkLoad::close() {
    commit_.reset();
    store_.impl_->loading = false;
}

void BulkLoad::check(std::size_t bin, std::span<const Keyed> ends) const {
    for (const Keyed& end : ends) {
        check_edge({end.vertex, end.label, end.value});
        if (bin_number(end.vertex, options_.shards, options_.pieces) != bin)
            throw DataError("vertex " + std::to_string(end.vertex) + " is in a foreign bin, " + std::to_string(bin));
        if (store_.impl_->by_number[store_.shard_of(end.vertex)] == nullptr)
            throw DataError("vertex " + std::to_string(end.vertex) + " is of a shard that is not here");
    }
}

void BulkLoad::append(std::size_t bin, Dir dir, std::vector<Keyed>& ends) {
    if (!commit_) throw DataError("the load is over");
    auto& seen = seen_[static_cast<int>(dir)];
    if (bin >= seen.size() || seen[bin]) throw DataError("bin " + std::to_string(bin) + " cannot be loaded (again)");
    check(bin, ends);
    seen[bin] = true;
    sort_ends(ends);
    try {
        for (auto& shard : store_.impl_->shards) {
            if (options_.shards == store_.shard_count()) {  // then the whole bin belongs to one shard
                if (ends.empty() || shard->header().shard != store_.shard_of(ends[0].vertex)) continue;
                append(*shard, dir, ends);
            } else {
                own_.clear();
                for (const Keyed& end : ends)
                    if (store_.shard_of(end.vertex) == shard->header().shard) own_.push_back(end);
                append(*shard, dir, own_);
            }
        }
    } catch (...) {
        close();  // a part of the bin is added: the rest cannot follow
        throw;
    }
}

/// Searches each end in its own list: an edge is in both of its lists or in neither. (The other may not be local.)
void BulkLoad::append(Shard& shard, Dir dir, std::vector<Keyed>& ends) {
    fresh_.clear();
    repeated_.clear();
    commit_->append_fresh(shard, dir, ends, fresh_, repeated_);
    for (const Keyed& end : repeated_) commit_->reassert(shard, dir, end);
    new_edges_[static_cast<int>(dir)] += fresh_.size();
    reasserted_ += repeated_.size();
}

Snapshot BulkLoad::publish() {
    if (!commit_) throw DataError("the load is over");
    Store::Impl& impl = *store_.impl_;
    const auto [out, in] = new_edges_;
    if (out != in && impl.whole())
        throw DataError("the load has " + std::to_string(out) + " new edges by subject, " + std::to_string(in) +
                        " by object");
    if (!options_.snapshot && out + reasserted_ == 0) {
        close();
        return latest_;
    }
    impl.changes.add_unknown(latest_ + 1);
    commit_->publish();
    close();
    return latest_ + 1;
}

}  // namespace penstock
