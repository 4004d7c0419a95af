#include "store/bulk_load.hpp"

#include <string>

#include "errors.hpp"
#include "store/store_impl.hpp"

namespace penstock {

namespace {
constexpr std::size_t kMaxPieces = 1u << 16;
}

BulkLoad::BulkLoad(Store& store, std::size_t pieces) : store_(store), pieces_(pieces), latest_(store.latest()) {
    if (pieces == 0 || pieces > kMaxPieces) throw LimitError("a shard's load has 1 to 65536 pieces");
    if (latest_ + 1 == 0) throw LimitError("snapshot numbers are used up");
    Store::Impl& impl = *store.impl_;
    impl.refuse_while_loading();
    if (!impl.whole()) throw Error("a part of a store cannot be loaded in bulk");
    for (auto& seen : seen_) seen.resize(impl.shards.size() * pieces);
    for (auto& shard : impl.shards) shard->begin(latest_ + 1, {});
    impl.loading = true;
}

BulkLoad::~BulkLoad() {
    if (open_) close();
}

void BulkLoad::close() {
    for (auto& shard : store_.impl_->shards) shard->abandon();
    store_.impl_->loading = false;
    open_ = false;
}

void BulkLoad::append(std::size_t bin, Dir dir, std::vector<Keyed>& ends) {
    if (!open_) throw DataError("the load is over");
    auto& shards = store_.impl_->shards;
    auto& seen = seen_[static_cast<int>(dir)];
    if (bin >= seen.size() || seen[bin]) throw DataError("bin " + std::to_string(bin) + " cannot be loaded (again)");
    for (const Keyed& end : ends) {
        check_edge({end.vertex, end.label, end.value});
        if (bin_number(end.vertex, shards.size(), pieces_) != bin)
            throw DataError("vertex " + std::to_string(end.vertex) + " is in a foreign bin, " + std::to_string(bin));
    }
    seen[bin] = true;
    sort_ends(ends);
    fresh_.clear();
    ignored_.clear();
    // Each end is looked for in its own list: an edge is in both of its lists or in none.
    auto* repeated = dir == Dir::Out ? &repeated_ : &ignored_;
    try {
        shards[bin / pieces_]->append(dir, ends, &fresh_, repeated);
    } catch (...) {
        close();  // a part of the bin is in: the rest cannot follow
        throw;
    }
    new_edges_[static_cast<int>(dir)] += fresh_.size();
}

Snapshot BulkLoad::publish() {
    if (!open_) throw DataError("the load is over");
    Store::Impl& impl = *store_.impl_;
    const auto [out, in] = new_edges_;
    if (out != in)
        throw DataError("the load has " + std::to_string(out) + " new edges by subject, " + std::to_string(in) +
                        " by object");
    for (const Keyed& end : repeated_) impl.reassert(end);
    if (out + repeated_.size() == 0) {
        close();
        return latest_;
    }
    for (auto& shard : impl.shards) shard->prepare();
    impl.publish(latest_ + 1, {});
    impl.loading = false;
    open_ = false;
    return latest_ + 1;
}

}  // namespace penstock
