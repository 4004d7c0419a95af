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
    // An edge that changes at its subject changes at its object too.
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

/// As append_part(): each direction is checked by itself.
Changed Store::Impl::change_part(StoreCommit& commit, std::vector<Keyed>& removed, std::vector<Keyed>& added,
                                 std::size_t& reasserted) {
    std::vector<Keyed> removed_in = removed, added_in = added;
    reverse(removed_in);
    reverse(added_in);
    std::vector<std::vector<Keyed>> removed_by_shard;
    Changed changed;
    std::vector<Keyed> gone, fresh, repeated;
    for (const Dir dir : {Dir::Out, Dir::In}) {
        gone.clear();
        fresh.clear();
        distribute(dir == Dir::Out ? added : added_in);
        distribute(dir == Dir::Out ? removed : removed_in, removed_by_shard);
        for (const auto& shard : shards) {
            const std::uint32_t number = shard->header().shard;
            repeated.clear();
            subtract(removed_by_shard[number], by_shard[number]);
            commit.change(*shard, dir, by_shard[number], removed_by_shard[number], {&fresh, &gone, &repeated});
            for (const Keyed& end : repeated) commit.reassert(*shard, dir, end);
            reasserted += repeated.size();
        }
        if (dir == Dir::Out) changed = {0, fresh.size(), gone.size()};
    }
    return changed;
}

Changed Store::change(std::span<const Edge> removed, std::span<const Edge> added, CommitSource source) {
    if (!impl_->whole()) throw Error("a part of a store cannot give commits their numbers");
    impl_->refuse_while_loading();
    return impl_->commit_change(latest() + 1, removed, added, source, false);
}

Changed Store::apply(Snapshot snapshot, std::span<const Edge> removed, std::span<const Edge> added,
                     CommitSource source) {
    impl_->check_next(snapshot);
    return impl_->commit_change(snapshot, removed, added, source, true);
}

Changed Store::Impl::commit_change(Snapshot snapshot, std::span<const Edge> removed, std::span<const Edge> added,
                                   CommitSource source, bool even_if_empty) {
    if (snapshot > kMaxSnapshot) throw LimitError("snapshot numbers are used up");
    std::vector<Keyed> fewer = out_ends(removed), more = out_ends(added);
    StoreCommit running(shards, history, snapshot, source, publish_logs);
    std::size_t repeated = 0;
    Changed changed = whole() ? change(running, fewer, more, repeated) : change_part(running, fewer, more, repeated);
    if (even_if_empty || changed.added + changed.removed + repeated > 0) {
        changes.add(snapshot, added, removed);
        running.publish();
    }
    changed.snapshot = history.latest();
    return changed;
}

}  // namespace penstock
