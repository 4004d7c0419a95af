#include "store/store.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "errors.hpp"
#include "store/files.hpp"
#include "store/history.hpp"
#include "store/shard.hpp"
#include "store/sharding.hpp"
#include "store/store_commit.hpp"
#include "store/store_impl.hpp"
#include "store/store_view.hpp"

namespace penstock {

void check_edge(const Edge& edge) {
    const auto storable = [](TermId id) { return id != kUnbound && tag_of(id) < Tag::Local; };
    if (!storable(edge.subject) || !storable(edge.object)) throw DataError("not a term that can be stored");
    if (edge.label == 0 || edge.label > layout::kMaxLabel) throw LimitError("edge label out of range");
}

namespace {

std::vector<std::uint32_t> own_shards(const StoreOptions& options) {
    std::vector<std::uint32_t> own = options.own;
    if (own.empty()) {
        own.resize(options.shards);
        std::iota(own.begin(), own.end(), 0);
    }
    std::sort(own.begin(), own.end());
    if (std::adjacent_find(own.begin(), own.end()) != own.end() || own.back() >= options.shards)
        throw DataError("the numbers of a node's own shards differ, and are below the number of all");
    return own;
}

class LeaseFrom final : public StoreLease {
public:
    LeaseFrom(CommitHistory& history, Snapshot snapshot) : history_(history), snapshot_(history.lease_from(snapshot)) {}
    ~LeaseFrom() override { history_.unlease_from(snapshot_); }
    Snapshot snapshot() const override { return snapshot_; }

private:
    CommitHistory& history_;
    Snapshot snapshot_;
};

}  // namespace

std::string region_path(const std::string& directory, std::size_t shard) {
    return region_file(directory, "shard-" + std::to_string(shard));
}

Store::Store(const std::string& directory, std::size_t shards, std::size_t reserve_bytes)
    : Store(directory, StoreOptions{.shards = shards, .reserve_bytes = reserve_bytes}) {}

Store::Store(const std::string& directory, const StoreOptions& options) : impl_(std::make_unique<Impl>()) {
    if (options.shards == 0 || options.shards > kMaxShards) throw LimitError("a store has 1 to 4096 shards");
    impl_->directory = directory;
    impl_->all_shards = options.shards;
    impl_->publish_logs = options.publish_logs;
    if (!directory.empty()) files::make_directory(directory);
    for (const std::uint32_t number : own_shards(options)) {
        Region region = Region::create(region_path(directory, number), options.reserve_bytes, number,
                                       static_cast<std::uint32_t>(options.shards));
        impl_->add(std::move(region));
    }
}

void Store::Impl::add(Region region) {
    const std::uint32_t number = region.header().shard, local = static_cast<std::uint32_t>(shards.size());
    shards.push_back(std::make_unique<Shard>(std::move(region), history, local));
    by_number.resize(all_shards);
    by_number[number] = shards.back().get();
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

const std::string& Store::directory() const { return impl_->directory; }
LabelTable& Store::labels() { return impl_->labels; }
std::size_t Store::shard_count() const { return impl_->all_shards; }
std::size_t Store::shard_of(TermId vertex) const { return shard_number(vertex, impl_->all_shards); }
Snapshot Store::latest() const { return impl_->history.latest(); }

// ---- commit

/// Distributes ends of one direction to the shards, in order. `ends` is consumed.
void Store::Impl::distribute(std::vector<Keyed>& ends, std::vector<std::vector<Keyed>>& parts) const {
    parts.resize(all_shards);
    for (auto& part : parts) part.clear();
    if (all_shards == 1)
        parts[0].swap(ends);
    else
        for (const Keyed& end : ends) parts[shard_number(end.vertex, all_shards)].push_back(end);
    for (const auto& shard : shards) sort_ends(parts[shard->header().shard]);
}

void Store::Impl::refuse_while_loading() const {
    if (loading) throw DataError("a bulk load is open: nothing else can be committed");
}

std::size_t Store::Impl::append(StoreCommit& commit, std::span<const Edge> edges) {
    std::vector<Keyed> ends;
    ends.reserve(edges.size());
    for (const Edge& edge : edges) {
        check_edge(edge);
        ends.push_back({edge.subject, edge.label, edge.object});
    }
    return whole() ? append_whole(commit, ends) : append_part(commit, ends);
}

std::size_t Store::Impl::append_whole(StoreCommit& commit, std::vector<Keyed>& ends) {
    std::vector<Keyed> fresh, repeated;
    fresh.reserve(ends.size());
    distribute(ends);
    for (std::size_t i = 0; i < shards.size(); ++i)
        commit.append_fresh(*shards[i], Dir::Out, by_shard[i], fresh, repeated);

    // An edge that is new at its subject is new at its object too: no second search.
    for (Keyed& end : fresh) std::swap(end.vertex, end.value);
    const std::size_t changes = fresh.size() + repeated.size();
    distribute(fresh);
    for (std::size_t i = 0; i < shards.size(); ++i) commit.append_new(*shards[i], Dir::In, by_shard[i]);

    reassert(commit, repeated);
    return changes;
}

void Store::Impl::reassert(StoreCommit& commit, std::span<const Keyed> repeated) const {
    for (const Keyed& out : repeated) {
        commit.reassert(*shards[shard_number(out.vertex, shards.size())], Dir::Out, out);
        commit.reassert(*shards[shard_number(out.value, shards.size())], Dir::In, {out.value, out.label, out.vertex});
    }
}

/// Possibly only one end of an edge belongs to this node, so each direction is checked by itself. All nodes reach the
/// same result, because they have the same commits.
std::size_t Store::Impl::append_part(StoreCommit& commit, std::vector<Keyed>& ends) {
    std::vector<Keyed> other = ends, fresh, repeated;
    for (Keyed& end : other) std::swap(end.vertex, end.value);
    std::size_t reasserted = 0;
    for (const Dir dir : {Dir::Out, Dir::In}) {
        distribute(dir == Dir::Out ? ends : other);
        for (const auto& shard : shards) {
            repeated.clear();
            commit.append_fresh(*shard, dir, by_shard[shard->header().shard], fresh, repeated);
            for (const Keyed& end : repeated) commit.reassert(*shard, dir, end);
            reasserted += repeated.size();
        }
    }
    return fresh.size() + reasserted;
}

Snapshot Store::commit(std::span<const Edge> edges, CommitSource source) {
    if (!impl_->whole()) throw Error("a part of a store cannot give commits their numbers");
    impl_->refuse_while_loading();
    if (!edges.empty()) impl_->commit(latest() + 1, edges, source, false);
    return latest();
}

void Store::Impl::check_next(Snapshot snapshot) const {
    if (snapshot != history.latest() + 1)
        throw DataError("commit " + std::to_string(snapshot) + " cannot follow " + std::to_string(history.latest()));
}

void Store::apply(Snapshot snapshot, std::span<const Edge> edges, CommitSource source) {
    impl_->check_next(snapshot);
    impl_->commit(snapshot, edges, source, true);
}

void Store::Impl::commit(Snapshot snapshot, std::span<const Edge> edges, CommitSource source, bool even_if_empty) {
    if (snapshot > kMaxSnapshot) throw LimitError("snapshot numbers are used up");
    StoreCommit running(shards, history, snapshot, source, publish_logs);
    const std::size_t count = append(running, edges);
    if (!even_if_empty && count == 0) return;
    changes.add(snapshot, edges);
    running.publish();
}

// ---- the rest

void Store::retire() {
    for (auto& shard : impl_->shards) shard->retire();
}

void Store::set_vts(std::uint32_t stream, std::int64_t batch) {
    for (auto& shard : impl_->shards) shard->set_vts(stream, batch);
}

std::unique_ptr<Source> Store::view(std::span<const StreamBound> bounds) {
    if (!impl_->whole()) throw Error("a part of a store cannot be viewed as the whole");
    auto visibility = impl_->history.lease(bounds);
    PastLists* const past = visibility.snapshot < impl_->history.latest() ? &impl_->past : nullptr;
    return std::make_unique<StoreView>(impl_->by_number, impl_->history, std::move(visibility), &impl_->changes, past);
}

std::unique_ptr<Source> Store::view_part(Snapshot snapshot, std::vector<Snapshot> excluded) {
    auto& history = impl_->history;
    return std::make_unique<StoreView>(impl_->by_number, history, history.lease_at(snapshot, std::move(excluded)));
}

std::unique_ptr<Source> Store::view_past(Snapshot before, Snapshot after, std::span<const StreamBound> named,
                                         std::span<const StreamBound> others) {
    if (!impl_->whole()) throw Error("a part of a store cannot be viewed as the whole");
    auto& history = impl_->history;
    return std::make_unique<StoreView>(impl_->by_number, history, history.lease_past(before, after, named, others),
                                       nullptr, &impl_->past);
}

void Store::keep(std::optional<Snapshot> snapshot) {
    impl_->history.keep(snapshot);
    impl_->past.begin(snapshot.value_or(latest()));
}

std::unique_ptr<StoreLease> Store::lease(Snapshot snapshot) {
    return std::make_unique<LeaseFrom>(impl_->history, snapshot);
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
