// A bulk load must leave what one commit of the same edges leaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "errors.hpp"
#include "store/bulk_load.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

constexpr std::size_t kPieces = 3;

std::vector<std::vector<Keyed>> dealt(const Store& store, const std::vector<Edge>& edges, Dir dir) {
    std::vector<std::vector<Keyed>> bins(store.shard_count() * kPieces);
    for (const Edge& edge : edges) {
        const Keyed end = dir == Dir::Out ? Keyed{edge.subject, edge.label, edge.object}
                                          : Keyed{edge.object, edge.label, edge.subject};
        bins[bin_number(end.vertex, store.shard_count(), kPieces)].push_back(end);
    }
    return bins;
}

void append_all(BulkLoad& load, const Store& store, const std::vector<Edge>& edges) {
    for (const Dir dir : {Dir::Out, Dir::In}) {
        auto bins = dealt(store, edges, dir);
        for (std::size_t bin = 0; bin < bins.size(); ++bin) load.append(bin, dir, bins[bin]);
    }
}

std::vector<Edge> random_edges(Fixture& fixture, unsigned seed, std::size_t n) {
    std::mt19937 random(seed);
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < n; ++i)
        edges.push_back({iri(random() % 50), fixture.label(random() % 4), iri(random() % 50)});
    return edges;
}

void expect_equal(Fixture& a, Fixture& b) {
    const auto left = a.store->view(), right = b.store->view();
    EXPECT_EQ(a.store->edge_count(), b.store->edge_count());
    for (std::uint64_t p = 0; p < 4; ++p)
        for (const Dir dir : {Dir::Out, Dir::In}) {
            EXPECT_EQ(sorted(vertices(*left, a.label(p), dir)), sorted(vertices(*right, b.label(p), dir)));
            for (std::uint64_t v = 0; v < 50; ++v)
                EXPECT_EQ(sorted(neighbours(*left, iri(v), a.label(p), dir)),
                          sorted(neighbours(*right, iri(v), b.label(p), dir)));
        }
}

TEST(BulkLoad, LeavesWhatACommitLeaves) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        Fixture loaded(1 + seed % 4), committed(1 + seed % 4);
        for (Fixture* fixture : {&loaded, &committed})
            for (std::uint64_t p = 0; p < 4; ++p) fixture->label(p);  // the same numbers in both
        for (unsigned round = 0; round < 3; ++round) {                // later rounds meet edges that are stored already
            const auto edges = random_edges(loaded, seed * 10 + round, 200);
            BulkLoad load(*loaded.store, {.pieces = kPieces});
            append_all(load, *loaded.store, edges);
            EXPECT_EQ(loaded.store->latest(), round);
            EXPECT_EQ(load.publish(), round + 1);
            committed.add(edges);
            expect_equal(loaded, committed);
        }
    }
}

TEST(BulkLoad, LeavesNothingWhenItIsGivenUp) {
    Fixture fixture(2);
    fixture.add({{iri(1), fixture.label(0), iri(2)}});
    const auto used = fixture.store->used_bytes();
    {
        BulkLoad load(*fixture.store, {.pieces = kPieces});
        append_all(load, *fixture.store, random_edges(fixture, 1, 500));
    }
    EXPECT_EQ(fixture.store->edge_count(), 1u);
    EXPECT_EQ(fixture.store->latest(), 1u);
    EXPECT_EQ(fixture.add({{iri(1), fixture.label(0), iri(3)}}), 2u);
    EXPECT_LE(fixture.store->used_bytes(), used + 4096);
}

TEST(BulkLoad, SpendsNoSnapshotWhereNothingIsNew) {
    Fixture fixture(2);
    const auto edges = random_edges(fixture, 7, 100);
    fixture.add(edges);
    BulkLoad load(*fixture.store, {.pieces = kPieces});
    append_all(load, *fixture.store, edges);
    EXPECT_EQ(load.publish(), 1u);
    EXPECT_THROW(load.publish(), DataError);
}

TEST(BulkLoad, SeesToItThatBoundsOfStreamsHoldForWhatItBringsAgain) {
    Fixture fixture;
    const Label l = fixture.label(0);
    const std::vector<Edge> edges{{iri(1), l, iri(2)}};
    fixture.add(edges, 1, 5);
    BulkLoad load(*fixture.store, {.pieces = kPieces});
    append_all(load, *fixture.store, edges);
    EXPECT_EQ(load.publish(), 2u);
    const StreamBound before{1, 4};  // the stream's assertion is out of sight, the load's is not
    const auto view = fixture.store->view(std::span(&before, 1));
    EXPECT_EQ(neighbours(*view, iri(1), l, Dir::Out), std::vector{iri(2)});
    EXPECT_EQ(neighbours(*view, iri(2), l, Dir::In), std::vector{iri(1)});
}

TEST(BulkLoad, OfAPartLeavesWhatAppliedCommitsLeaveAndSpendsItsNumber) {
    constexpr std::size_t kShards = 3;
    Fixture names;
    for (std::uint64_t p = 0; p < 4; ++p) names.label(p);
    for (std::uint32_t own = 0; own < kShards; ++own) {
        Store loaded("", {.shards = kShards, .own = {own}}), applied("", {.shards = kShards, .own = {own}});
        for (unsigned round = 0; round < 4; ++round) {  // the last one brings nothing new
            const auto edges = random_edges(names, std::min(round, 2u), 300);
            const CommitSource source{7, round};
            BulkLoad load(loaded, {.pieces = kPieces, .source = source, .snapshot = round + 1});
            for (const Dir dir : {Dir::Out, Dir::In}) {
                auto bins = dealt(loaded, edges, dir);
                for (std::size_t bin = 0; bin < bins.size(); ++bin)
                    if (bin / kPieces == own)
                        load.append(bin, dir, bins[bin]);
                    else if (!bins[bin].empty())
                        EXPECT_THROW(load.append(bin, dir, bins[bin]), DataError);
            }
            EXPECT_EQ(load.publish(), round + 1);
            applied.apply(round + 1, edges, source);
        }
        EXPECT_EQ(loaded.latest(), 4u);
        EXPECT_EQ(loaded.edge_count(), applied.edge_count());
        for (Snapshot at = 1; at <= 4; ++at) {
            const auto left = loaded.view_part(at), right = applied.view_part(at);
            for (std::uint64_t v = 0; v < 50; ++v) {
                if (loaded.shard_of(iri(v)) != own) continue;
                for (std::uint64_t p = 0; p < 4; ++p)
                    for (const Dir dir : {Dir::Out, Dir::In})
                        EXPECT_EQ(sorted(neighbours(*left, iri(v), names.label(p), dir)),
                                  sorted(neighbours(*right, iri(v), names.label(p), dir)));
            }
        }
    }
    Fixture part(2);
    EXPECT_THROW(BulkLoad(*part.store, {.pieces = kPieces, .snapshot = 2}), DataError);  // it is not the next one
}

TEST(BulkLoad, MadeForOtherShardsLeavesTheSame) {
    for (unsigned seed = 0; seed < 8; ++seed) {
        Fixture loaded(1 + seed % 3), committed(1 + seed % 3);
        Store dealer("", {.shards = 5});
        for (Fixture* fixture : {&loaded, &committed})
            for (std::uint64_t p = 0; p < 4; ++p) fixture->label(p);
        const auto edges = random_edges(loaded, seed, 300);
        BulkLoad load(*loaded.store, {.pieces = kPieces, .shards = 5});
        append_all(load, dealer, edges);
        EXPECT_EQ(load.publish(), 1u);
        committed.add(edges);
        expect_equal(loaded, committed);
    }
}

TEST(BulkLoad, RefusesWhatWouldBreakTheStore) {
    Fixture fixture(2);
    const Label l = fixture.label(0);
    BulkLoad load(*fixture.store, {.pieces = kPieces});
    EXPECT_THROW(BulkLoad(*fixture.store, {.pieces = kPieces}), DataError);
    EXPECT_THROW(fixture.add({{iri(1), l, iri(2)}}), DataError);
    const std::size_t bin = bin_number(iri(1), 2, kPieces);
    std::vector<Keyed> ends{{iri(1), l, iri(2)}};
    EXPECT_THROW(load.append((bin + 1) % 6, Dir::Out, ends), DataError);
    EXPECT_THROW(load.append(6, Dir::Out, ends), DataError);
    load.append(bin, Dir::Out, ends);
    EXPECT_THROW(load.append(bin, Dir::Out, ends), DataError);
    EXPECT_THROW(load.publish(), DataError);  // the other direction is missing
    EXPECT_EQ(fixture.store->edge_count(), 0u);
}

TEST(BulkLoad, RefusesAnImpossibleNumberOfPieces) {
    Fixture fixture;
    EXPECT_THROW(BulkLoad(*fixture.store, {.pieces = 0}), LimitError);
    EXPECT_THROW(BulkLoad(*fixture.store, {.pieces = std::size_t{1} << 20}), LimitError);
}

}  // namespace
}  // namespace penstock::test
