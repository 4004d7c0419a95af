// Store::change: commits that remove edges.
#include <algorithm>
#include <tuple>
#include <utility>

#include "errors.hpp"
#include "store/sharding.hpp"
#include "store/store_impl.hpp"

namespace penstock {

namespace {

std::vector<Keyed> out_ends(std::span<const Edge> edges) {
    std::vector<Keyed> ends;
    ends.reserve(edges.size());
    for (const Edge& edge : edges) {
        check_edge(edge);
        ends.push_back({edge.subject, edge.label, edge.object});
    }
    return ends;
}

/// Drops those of `ends` that are in `others`, which is sorted.
void subtract(std::vector<Keyed>& ends, const std::vector<Keyed>& others) {
    const auto before = [](const Keyed& a, const Keyed& b) {
        return std::tie(a.vertex, a.label, a.value) < std::tie(b.vertex, b.label, b.value);
    };
    std::erase_if(ends,
                  [&](const Keyed& end) { return std::binary_search(others.begin(), others.end(), end, before); });
}

void reverse(std::vector<Keyed>& ends) {
    for (Keyed& end : ends) std::swap(end.vertex, end.value);
}

}  // namespace

Changed Store::Impl::change(StoreCommit& commit, std::vector<Keyed>& removed, std::vector<Keyed>& added,
                            std::size_t& reasserted) {
    std::vector<Keyed> gone, fresh, repeated;
    std::vector<std::vector<Keyed>> removed_by_shard;
    distribute(added);
    distribute(removed, removed_by_shard);
    for (std::size_t i = 0; i < shards.size(); ++i) {
        subtract(removed_by_shard[i], by_shard[i]);
        commit.change(*shards[i], Dir::Out, by_shard[i], removed_by_shard[i], {&fresh, &gone, &repeated});
    }
    // What changes at its subject changes at its object too.
    const Changed changed{0, fresh.size(), gone.size()};
    reverse(fresh);
    reverse(gone);
    distribute(fresh);
    distribute(gone, removed_by_shard);
    for (std::size_t i = 0; i < shards.size(); ++i)
        commit.change(*shards[i], Dir::In, by_shard[i], removed_by_shard[i], {});
    reassert(commit, repeated);
    reasserted = repeated.size();
    return changed;
}

Changed Store::change(std::span<const Edge> removed, std::span<const Edge> added, CommitSource source) {
    if (!impl_->whole()) throw DataError("a part of a store cannot remove edges yet");
    if (impl_->publish_logs) throw DataError("a store that publishes its logs cannot remove edges yet");
    impl_->refuse_while_loading();
    std::vector<Keyed> fewer = out_ends(removed), more = out_ends(added);
    return impl_->commit_change(latest() + 1, fewer, more, source);
}

Changed Store::Impl::commit_change(Snapshot snapshot, std::vector<Keyed>& removed, std::vector<Keyed>& added,
                                   CommitSource source) {
    if (snapshot > kMaxSnapshot) throw LimitError("snapshot numbers are used up");
    StoreCommit running(shards, history, snapshot, source);
    std::size_t repeated = 0;
    Changed changed = change(running, removed, added, repeated);
    if (changed.added + changed.removed + repeated > 0) running.publish(publish_logs);
    changed.snapshot = history.latest();
    has_removals = has_removals || changed.removed > 0;
    return changed;
}

}  // namespace penstock
