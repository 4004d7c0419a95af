#include "store/store.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "errors.hpp"
#include "store/files.hpp"
#include "store/history.hpp"
#include "store/shard.hpp"
#include "store/sharding.hpp"
#include "store/store_impl.hpp"
#include "store/store_view.hpp"

namespace penstock {

void check_edge(const Edge& edge) {
    const auto storable = [](TermId id) { return id != kUnbound && tag_of(id) < Tag::Local; };
    if (!storable(edge.subject) || !storable(edge.object)) throw DataError("not a term that can be stored");
    if (edge.label == 0 || edge.label > layout::kMaxLabel) throw LimitError("edge label out of range");
}

std::string region_path(const std::string& directory, std::size_t shard) {
    return directory + "/shard-" + std::to_string(shard) + ".region";
}

Store::Store(const std::string& directory, std::size_t shards, std::size_t reserve_bytes)
    : impl_(std::make_unique<Impl>()) {
    impl_->directory = directory;
    if (shards == 0 || shards > kMaxShards) throw LimitError("a store has 1 to 4096 shards");
    files::make_directory(directory);
    for (std::uint32_t i = 0; i < shards; ++i)
        impl_->shards.push_back(std::make_unique<Shard>(
            Region::create(region_path(directory, i), reserve_bytes, i, static_cast<std::uint32_t>(shards)),
            impl_->history, i));
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

const std::string& Store::directory() const { return impl_->directory; }
LabelTable& Store::labels() { return impl_->labels; }
std::size_t Store::shard_count() const { return impl_->shards.size(); }
std::size_t Store::shard_of(TermId vertex) const { return shard_number(vertex, impl_->shards.size()); }
Snapshot Store::latest() const { return impl_->history.latest(); }

// ---- commit

/// Hands each shard its ends of one direction, in order. `ends` is used up.
void Store::Impl::distribute(std::vector<Keyed>& ends) {
    by_shard.resize(shards.size());
    for (auto& part : by_shard) part.clear();
    if (shards.size() == 1)
        by_shard[0].swap(ends);
    else
        for (const Keyed& end : ends) by_shard[shard_number(end.vertex, shards.size())].push_back(end);
    for (auto& part : by_shard) sort_ends(part);
}

void Store::Impl::refuse_while_loading() const {
    if (loading) throw DataError("a bulk load is open: nothing else can be committed");
}

void Store::Impl::reassert(const Keyed& out) {
    shards[shard_number(out.vertex, shards.size())]->reassert(Dir::Out, out);
    shards[shard_number(out.value, shards.size())]->reassert(Dir::In, {out.value, out.label, out.vertex});
}

void Store::Impl::prepare(std::span<const Edge> edges) {
    std::vector<Keyed> ends, fresh, repeated;
    ends.reserve(edges.size());
    for (const Edge& edge : edges) {
        check_edge(edge);
        ends.push_back({edge.subject, edge.label, edge.object});
    }
    distribute(ends);
    for (std::size_t i = 0; i < shards.size(); ++i) shards[i]->append(Dir::Out, by_shard[i], &fresh, &repeated);

    // What is new at its subject is new at its object too: no second test.
    for (Keyed& end : fresh) std::swap(end.vertex, end.value);
    new_edges = fresh.size();
    distribute(fresh);
    for (std::size_t i = 0; i < shards.size(); ++i) shards[i]->append(Dir::In, by_shard[i], nullptr, nullptr);

    reasserted = repeated.size();
    for (const Keyed& end : repeated) reassert(end);
    for (auto& shard : shards) shard->prepare();
}

void Store::Impl::publish(Snapshot snapshot, CommitSource source) {
    const auto store_words = [&] {
        for (auto& shard : shards) shard->publish();
    };
    if (!history.can_be_excluded(source) && history.publish_unlogged(snapshot, store_words)) return;
    auto record = std::make_unique<CommitRecord>(CommitRecord{snapshot, source, {}});
    for (auto& shard : shards) record->logs.push_back(shard->make_log());
    history.add(std::move(record));
    store_words();
    history.publish(snapshot, source);
}

Snapshot Store::commit(std::span<const Edge> edges, CommitSource source) {
    Impl& impl = *impl_;
    impl.refuse_while_loading();
    const Snapshot latest = impl.history.latest();
    if (edges.empty()) return latest;
    if (latest + 1 == 0) throw LimitError("snapshot numbers are used up");
    for (auto& shard : impl.shards) shard->begin(latest + 1, source);
    try {
        impl.prepare(edges);
        if (impl.new_edges + impl.reasserted == 0) {
            for (auto& shard : impl.shards) shard->abandon();
            return latest;
        }
        impl.publish(latest + 1, source);
    } catch (...) {
        for (auto& shard : impl.shards) shard->abandon();
        throw;
    }
    return latest + 1;
}

// ---- the rest

void Store::set_vts(std::uint32_t stream, std::int64_t batch) {
    for (auto& shard : impl_->shards) shard->set_vts(stream, batch);
}

std::unique_ptr<Source> Store::view(std::span<const StreamBound> bounds) {
    return std::make_unique<StoreView>(impl_->shards, impl_->history, bounds);
}

void Store::release(std::uint32_t stream, std::int64_t batch) { impl_->history.release(stream, batch); }

std::uint64_t Store::edge_count() const {
    std::uint64_t total = 0;
    for (const auto& shard : impl_->shards) total += shard->edge_count();
    return total;
}

std::uint64_t Store::used_bytes() const {
    std::uint64_t total = 0;
    for (const auto& shard : impl_->shards) total += shard->used_bytes();
    return total;
}

std::uint64_t Store::log_bytes() const { return impl_->history.bytes(); }

std::uint64_t Store::index_bytes() const {
    std::uint64_t total = 0;
    for (const auto& shard : impl_->shards) total += shard->index_bytes();
    return total;
}

}  // namespace penstock
