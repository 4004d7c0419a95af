// What single commits do, and what they refuse.
#include <gtest/gtest.h>

#include <random>

#include "errors.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

TEST(StoreCommit, StoresAnEdgeInBothDirections) {
    Fixture fixture;
    const Label knows = fixture.label(0);
    EXPECT_EQ(fixture.add({{iri(1), knows, iri(2)}}), 1u);
    const auto view = fixture.store->view();
    EXPECT_EQ(neighbours(*view, iri(1), knows, Dir::Out), std::vector{iri(2)});
    EXPECT_EQ(neighbours(*view, iri(2), knows, Dir::In), std::vector{iri(1)});
    EXPECT_TRUE(neighbours(*view, iri(2), knows, Dir::Out).empty());
    EXPECT_EQ(vertices(*view, knows, Dir::Out), std::vector{iri(1)});
    EXPECT_EQ(vertices(*view, knows, Dir::In), std::vector{iri(2)});
    EXPECT_EQ(labels_of(*view, iri(1), Dir::Out), std::vector{knows});
}

TEST(StoreCommit, SpendsNoSnapshotWhereNothingIsNew) {
    Fixture fixture;
    const Label l = fixture.label(0);
    EXPECT_EQ(fixture.add({}), 0u);
    EXPECT_EQ(fixture.add({{iri(1), l, iri(2)}, {iri(1), l, iri(2)}}), 1u);
    const auto used = fixture.store->used_bytes();
    EXPECT_EQ(fixture.add({{iri(1), l, iri(2)}}), 1u);
    EXPECT_EQ(fixture.store->used_bytes(), used);
    EXPECT_EQ(fixture.store->edge_count(), 1u);
}

TEST(StoreCommit, KeepsLabelsApart) {
    Fixture fixture(3);
    const Label a = fixture.label(0), b = fixture.label(1);
    const Label named = fixture.store->labels().intern(iri(9), iri(0));
    fixture.add({{iri(1), a, iri(2)}, {iri(1), b, iri(3)}, {iri(1), named, iri(4)}});
    const auto view = fixture.store->view();
    EXPECT_EQ(neighbours(*view, iri(1), a, Dir::Out), std::vector{iri(2)});
    EXPECT_EQ(neighbours(*view, iri(1), named, Dir::Out), std::vector{iri(4)});
    EXPECT_EQ(labels_of(*view, iri(1), Dir::Out), (std::vector{a, b, named}));
    EXPECT_EQ(view->stats(a).edges, 1u);
}

TEST(StoreCommit, AppendsToAnObjectInAShardWithoutSubjects) {
    Fixture fixture(2);
    const Label l = fixture.label(0);
    const auto in_shard = [&](std::size_t shard, std::uint64_t from) {
        while (fixture.store->shard_of(iri(from)) != shard) ++from;
        return from;
    };
    const TermId object = iri(in_shard(1, 0));
    const std::uint64_t first = in_shard(0, 100), second = in_shard(0, first + 1);
    fixture.add({{iri(first), l, object}});
    fixture.add({{iri(second), l, object}});
    const auto view = fixture.store->view();
    EXPECT_EQ(neighbours(*view, object, l, Dir::In), (std::vector{iri(first), iri(second)}));
    EXPECT_EQ(vertices(*view, l, Dir::In), std::vector{object});
}

TEST(StoreCommit, RefusesWhatIsNoTermAndChangesNothing) {
    Fixture fixture;
    const Label l = fixture.label(0);
    EXPECT_THROW(fixture.add({{iri(1), l, iri(2)}, {kUnbound, l, iri(2)}}), DataError);
    EXPECT_THROW(fixture.add({{iri(1), l, make_id(Tag::Local, 3)}}), DataError);
    EXPECT_THROW(fixture.add({{iri(1), l, make_id(Tag::Extent, 3)}}), DataError);
    EXPECT_THROW(fixture.add({{iri(1), 0, iri(2)}}), LimitError);
    EXPECT_THROW(fixture.add({{iri(1), ~Label{0}, iri(2)}}), LimitError);
    EXPECT_EQ(fixture.store->latest(), 0u);
    EXPECT_EQ(fixture.store->edge_count(), 0u);
    EXPECT_TRUE(vertices(*fixture.store->view(), l, Dir::Out).empty());
}

TEST(StoreCommit, RefusesAnImpossibleNumberOfShards) {
    EXPECT_THROW(Fixture(0), LimitError);
    EXPECT_THROW(Fixture(100000), LimitError);
}

TEST(StoreCommit, LeavesNothingBehindWhenTheRegionIsFull) {
    Fixture fixture(2, 3 << 20);
    const Label l = fixture.label(0);
    fixture.add({{iri(1), l, iri(2)}});
    const auto view = fixture.store->view();
    std::vector<Edge> many;
    for (std::uint64_t i = 0; i < 200000; ++i) many.push_back({iri(i), l, iri(i + 7)});
    for (int attempt = 0; attempt < 20; ++attempt) EXPECT_THROW(fixture.add(many), LimitError);
    EXPECT_EQ(fixture.store->latest(), 1u);
    EXPECT_EQ(vertices(*view, l, Dir::Out), std::vector{iri(1)});
    EXPECT_EQ(vertices(*fixture.store->view(), l, Dir::Out), std::vector{iri(1)});
    // What the failed attempts took is there for others.
    many.resize(4000);
    EXPECT_EQ(fixture.add(many), 2u);
    EXPECT_EQ(vertices(*fixture.store->view(), l, Dir::Out).size(), 4000u);
    EXPECT_EQ(vertices(*view, l, Dir::Out), std::vector{iri(1)});
}

TEST(StoreCommit, FindsEveryLabelOfAVeryWideVertex) {
    Fixture fixture;
    constexpr std::uint64_t kLabels = 10000;
    const std::uint64_t together[] = {1, 30, 40, 500, 3000};  // all at once, and one by one
    std::mt19937_64 random(3);
    std::uint64_t done = 0;
    std::vector<Label> all;
    while (done < kLabels) {
        std::vector<Edge> edges;
        for (std::uint64_t n = together[random() % 5]; n > 0 && done < kLabels; --n, ++done) {
            all.push_back(fixture.label(done));
            edges.push_back({iri(1), all.back(), iri(100 + done)});
        }
        fixture.add(edges);
    }
    const auto view = fixture.store->view();
    for (std::uint64_t i = 0; i < kLabels; ++i) {
        ASSERT_EQ(neighbours(*view, iri(1), all[i], Dir::Out), std::vector{iri(100 + i)}) << i;
        ASSERT_EQ(view->stats(all[i]).subjects, 1u);
    }
    EXPECT_EQ(labels_of(*view, iri(1), Dir::Out).size(), kLabels);
    EXPECT_EQ(view->degree(iri(1), fixture.label(kLabels + 1), Dir::Out), 0u);
    std::vector<Label> present;
    view->labels(present);
    EXPECT_EQ(present.size(), kLabels);
}

TEST(StoreCommit, KeepsHubsASet) {
    Fixture fixture;
    const Label l = fixture.label(0);
    constexpr std::uint64_t kMembers = 20000;
    std::mt19937_64 random(5);
    std::set<TermId> members;
    // A sorted base, then small commits in any order, half of them of what is there already.
    std::vector<Edge> base;
    for (std::uint64_t i = 0; i < 1000; ++i) base.push_back({iri(0), l, iri(1 + random() % kMembers)});
    for (const Edge& e : base) members.insert(e.object);
    fixture.add(base);
    for (int round = 0; round < 300; ++round) {
        std::vector<Edge> edges;
        for (int i = 0; i < 60; ++i) edges.push_back({iri(0), l, iri(1 + random() % kMembers)});
        for (const Edge& e : edges) members.insert(e.object);
        fixture.add(edges);
    }
    const auto view = fixture.store->view();
    EXPECT_EQ(neighbours(*view, iri(0), l, Dir::Out), (std::vector<TermId>(members.begin(), members.end())));
    EXPECT_EQ(fixture.store->edge_count(), members.size());
    EXPECT_GT(fixture.store->index_bytes(), 0u);
    for (std::uint64_t i = 1; i <= kMembers; i += 97)
        EXPECT_EQ(has(*view, iri(0), l, iri(i)), members.contains(iri(i)));
}

TEST(StoreCommit, AppendsALargeCommitToAFilledStore) {
    Fixture fixture(3);
    const Label l = fixture.label(0), m = fixture.label(1);
    std::mt19937_64 random(9);
    std::set<std::pair<TermId, TermId>> expected;
    for (int round = 0; round < 3; ++round) {
        std::vector<Edge> edges;
        for (int i = 0; i < 100000; ++i) edges.push_back({iri(random() % 5000), l, iri(random() % 300)});
        for (const Edge& e : edges) expected.emplace(e.subject, e.object);
        edges.push_back({iri(7), m, iri(8)});
        fixture.add(edges);
    }
    const auto view = fixture.store->view();
    std::vector<TermId> s, o;
    view->edges(l, s, o);
    std::set<std::pair<TermId, TermId>> got;
    for (std::size_t i = 0; i < s.size(); ++i) EXPECT_TRUE(got.emplace(s[i], o[i]).second);
    EXPECT_EQ(got, expected);
    EXPECT_EQ(view->stats(l).edges, expected.size());
    EXPECT_EQ(view->stats(l).subjects, 5000u);
    EXPECT_EQ(view->stats(l).objects, 300u);
}

TEST(StoreViews, StayWhatTheyWereWhileTheTableGrows) {
    Fixture fixture;
    const Label l = fixture.label(0);
    fixture.add({{iri(0), l, iri(1)}});
    std::vector<std::unique_ptr<Source>> views;
    for (std::uint64_t i = 1; i < 200; ++i) {
        views.push_back(fixture.store->view());
        std::vector<Edge> edges;
        for (std::uint64_t k = 0; k < 50; ++k) edges.push_back({iri(i * 50 + k), l, iri(0)});
        fixture.add(edges);
    }
    for (std::size_t i = 0; i < views.size(); ++i) {
        EXPECT_EQ(neighbours(*views[i], iri(0), l, Dir::In).size(), i * 50);
        EXPECT_EQ(vertices(*views[i], l, Dir::Out).size(), 1 + i * 50);
        EXPECT_EQ(views[i]->degree(iri(50 * (i + 1)), l, Dir::Out), 0u);
    }
}

TEST(StoreViews, ReturnTheMemoryOfOldTablesAndLogs) {
    Fixture fixture;
    const Label l = fixture.label(0);
    auto view = fixture.store->view();
    for (std::uint64_t i = 0; i < 20000; i += 10) {
        std::vector<Edge> edges;
        for (std::uint64_t k = 0; k < 10; ++k) edges.push_back({iri(i + k), l, iri(0)});
        fixture.add(edges);
    }
    EXPECT_GT(fixture.store->log_bytes(), 0u);
    const auto held = fixture.store->used_bytes();
    view.reset();
    EXPECT_EQ(fixture.store->log_bytes(), 0u);
    fixture.add({{iri(1), l, iri(1)}});
    EXPECT_LT(fixture.store->used_bytes(), held);
}

TEST(StoreViews, BoundOneStreamAndNotTheOthers) {
    Fixture fixture;
    const Label l = fixture.label(0);
    for (std::int64_t batch = 1; batch <= 5; ++batch) {
        fixture.add({{iri(0), l, iri(static_cast<std::uint64_t>(batch))}}, 1, batch);
        fixture.add({{iri(0), l, iri(static_cast<std::uint64_t>(batch) + 10)}}, 2, batch);
    }
    const StreamBound bounds[] = {{1, 2}, {2, 4}};
    const auto view = fixture.store->view(bounds);
    EXPECT_EQ(neighbours(*view, iri(0), l, Dir::Out),
              (std::vector{iri(1), iri(2), iri(11), iri(12), iri(13), iri(14)}));
    EXPECT_EQ(view->degree(iri(0), l, Dir::Out), 6u);
    EXPECT_TRUE(vertices(*view, l, Dir::In) == (std::vector{iri(1), iri(2), iri(11), iri(12), iri(13), iri(14)}));
    const StreamBound before[] = {{1, 0}, {2, 0}};
    EXPECT_TRUE(vertices(*fixture.store->view(before), l, Dir::Out).empty());
    EXPECT_TRUE(labels_of(*fixture.store->view(before), iri(0), Dir::Out).empty());
}

TEST(StoreViews, ShowWhatASecondStreamSaysAgain) {
    Fixture fixture;
    const Label l = fixture.label(0);
    fixture.add({{iri(1), l, iri(2)}}, 1, 10);
    EXPECT_EQ(fixture.add({{iri(1), l, iri(2)}}, 1, 11), 1u);  // the same stream again: nothing to record
    EXPECT_EQ(fixture.add({{iri(1), l, iri(2)}}, 2, 1), 2u);
    const StreamBound behind[] = {{1, 5}};
    const StreamBound both[] = {{1, 5}, {2, 0}};
    EXPECT_TRUE(has(*fixture.store->view(behind), iri(1), l, iri(2)));
    EXPECT_EQ(vertices(*fixture.store->view(behind), l, Dir::In), std::vector{iri(2)});
    EXPECT_FALSE(has(*fixture.store->view(both), iri(1), l, iri(2)));
    EXPECT_EQ(fixture.store->edge_count(), 1u);
}

TEST(StoreViews, ShowWhatIsSaidAgainOfAHubThatGrowsInTheSameCommit) {
    Fixture fixture;
    const Label l = fixture.label(0);
    const TermId hub = iri(0);
    std::uint64_t next = 1000;
    const auto fresh = [&] { return Edge{iri(--next), l, hub}; };  // descending: no sorted run grows
    for (int i = 0; i < 200; ++i) fixture.add({fresh()});
    const Edge early = fresh();
    fixture.add({early}, 1, 1);
    const Edge late = fresh();
    fixture.add({late, early}, 2, 1);  // appends to the hub and repeats `early`
    fixture.add({late}, 3, 1);         // repeats `late`
    const StreamBound without[] = {{1, 0}, {2, 0}};
    const auto seen = neighbours(*fixture.store->view(without), hub, l, Dir::In);
    EXPECT_TRUE(std::find(seen.begin(), seen.end(), late.subject) != seen.end());
    EXPECT_TRUE(std::find(seen.begin(), seen.end(), early.subject) == seen.end());
    EXPECT_EQ(seen.size(), 201u);
}

TEST(StoreViews, RefuseABoundThatWasReleased) {
    Fixture fixture;
    fixture.add({{iri(1), fixture.label(0), iri(2)}}, 1, 10);
    fixture.store->release(1, 10);
    EXPECT_EQ(fixture.store->log_bytes(), 0u);
    const StreamBound below[] = {{1, 9}};
    const StreamBound at[] = {{1, 10}};
    EXPECT_THROW(fixture.store->view(below), Error);
    EXPECT_TRUE(has(*fixture.store->view(at), iri(1), 1, iri(2)));
}

}  // namespace
}  // namespace penstock::test
