// Views of a part of a store, as forks read it on nodes: what lies here is seen as a view of the whole sees it.
#include <gtest/gtest.h>

#include <random>

#include "errors.hpp"
#include "store/sharding.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

constexpr std::size_t kShards = 5;
constexpr std::uint64_t kVertices = 60, kPredicates = 3;

/// The same commits on a store that has all shards and on two that share them.
class Part : public ::testing::Test {
protected:
    Part() {
        for (Store* store : stores())
            for (std::uint64_t p = 0; p < kPredicates; ++p) store->labels().intern(0, iri(p));
    }
    std::vector<Store*> stores() { return {&whole, &parts[0], &parts[1]}; }
    void commit(std::uint32_t stream, std::int64_t batch) {
        std::vector<Edge> edges;
        for (int i = 0; i < 40; ++i)
            edges.push_back({vertex(), static_cast<Label>(1 + random() % kPredicates), vertex()});
        for (Store* store : stores()) store->apply(store->latest() + 1, edges, {stream, batch});
    }
    TermId vertex() { return iri(random() % kVertices * (random() % 3 != 0)); }  // a third of the ends is one hub's

    std::vector<TermId> here(std::size_t part) {
        std::vector<TermId> vertices;
        for (std::uint64_t v = 0; v < kVertices; ++v)
            if ((shard_number(iri(v), kShards) % 2 == 1) == (part == 1)) vertices.push_back(iri(v));
        return vertices;
    }
    static std::vector<std::pair<std::uint32_t, TermId>> expanded(const Source& view, const std::vector<TermId>& keys,
                                                                  Label label, Dir dir) {
        Matches matches;
        view.expand(keys, label, dir, matches);
        std::vector<std::pair<std::uint32_t, TermId>> found;
        for (std::size_t i = 0; i < matches.rows.size(); ++i) found.emplace_back(matches.rows[i], matches.values[i]);
        std::sort(found.begin(), found.end());
        return found;
    }
    void compare(const Source& all, const Source& some, std::size_t part);

    ScratchDirectory scratch;
    std::mt19937 random{7};
    Store whole{scratch / "whole", StoreOptions{.shards = kShards, .reserve_bytes = kReserve}};
    Store parts[2] = {
        Store(scratch / "even", StoreOptions{.shards = kShards, .own = {0, 2, 4}, .reserve_bytes = kReserve}),
        Store(scratch / "odd", StoreOptions{.shards = kShards, .own = {1, 3}, .reserve_bytes = kReserve})};
};

void Part::compare(const Source& all, const Source& some, std::size_t part) {
    const std::vector<TermId> keys = here(part);
    for (const Dir dir : {Dir::Out, Dir::In}) {
        for (Label label = 1; label <= kPredicates; ++label) {
            const auto expected = expanded(all, keys, label, dir);
            EXPECT_EQ(expanded(some, keys, label, dir), expected);
            std::vector<TermId> from, to;
            for (const TermId key : keys)
                for (std::uint64_t v = 0; v < kVertices; ++v) {
                    from.push_back(key);
                    to.push_back(iri(v));
                }
            const auto &subjects = dir == Dir::Out ? from : to, &objects = dir == Dir::Out ? to : from;
            std::vector<std::uint8_t> there(from.size()), found(from.size());
            all.contains(subjects, label, objects, there);
            some.contains(subjects, label, objects, found);
            EXPECT_EQ(found, there);
            EXPECT_EQ(std::count(found.begin(), found.end(), 1), static_cast<std::ptrdiff_t>(expected.size()));
        }
        std::vector<std::uint32_t> rows[2];
        std::vector<Label> labels[2];
        all.labels_of(keys, dir, rows[0], labels[0]);
        some.labels_of(keys, dir, rows[1], labels[1]);
        EXPECT_EQ(rows[1], rows[0]);
        EXPECT_EQ(labels[1], labels[0]);
    }
}

TEST_F(Part, shows_what_the_whole_shows_at_that_snapshot_without_those_commits) {
    std::vector<std::unique_ptr<StoreLease>> leases;
    for (Store* store : stores()) leases.push_back(store->lease(0));
    for (std::int64_t batch = 1; batch <= 12; ++batch) {
        commit(1 + batch % 2, batch);
        std::vector<Snapshot> excluded;  // of stream 2, whose batches are the odd ones, what is later than batch 5
        for (Snapshot commit = 7; commit <= whole.latest(); commit += 2) excluded.push_back(commit);
        const std::vector<StreamBound> bounds{{2, 5}};
        const auto all = whole.view(bounds);
        for (std::size_t part : {0, 1}) compare(*all, *parts[part].view_part(whole.latest(), excluded), part);
    }
    const auto latest = whole.latest();
    const auto all = whole.view();
    for (int i = 0; i < 5; ++i) commit(0, 0);
    for (std::size_t part : {0, 1}) compare(*all, *parts[part].view_part(latest), part);
}

TEST_F(Part, refuses_vertices_of_remote_shards_and_operations_on_all_shards) {
    commit(0, 0);
    const auto view = parts[0].view_part(1);
    const std::vector<TermId> remote = here(1);
    Matches matches;
    std::vector<std::uint32_t> rows;
    std::vector<Label> labels;
    std::vector<std::uint8_t> found(remote.size());
    std::vector<TermId> vertices;
    EXPECT_THROW(view->expand(remote, 1, Dir::Out, matches), DataError);
    EXPECT_THROW(view->contains(remote, 1, remote, found), DataError);
    EXPECT_THROW(view->labels_of(remote, Dir::In, rows, labels), DataError);
    EXPECT_THROW(view->degree(remote[0], 1, Dir::Out), DataError);
    EXPECT_THROW(view->vertices(1, Dir::Out, vertices), DataError);
    EXPECT_THROW(view->edges(1, vertices, vertices), DataError);
}

TEST_F(Part, errs_where_the_snapshot_is_not_here_yet_or_no_longer) {
    commit(0, 0);
    EXPECT_THROW(parts[0].view_part(2), StorageError);
    EXPECT_THROW(parts[0].view_part(1, {2}), DataError);
    EXPECT_THROW(parts[0].view_part(1, {1, 0}), DataError);
    const auto view = parts[0].view_part(1);
    commit(0, 0);
    commit(0, 0);
    EXPECT_NO_THROW(parts[0].view_part(2));  // a view of an older one keeps what is between
    EXPECT_THROW(parts[1].view_part(1), StorageError);
}

}  // namespace
}  // namespace penstock::test
