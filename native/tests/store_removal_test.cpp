// Commits that remove edges: random ones against a plain model, and each rule by itself.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "errors.hpp"
#include "store/bulk_load.hpp"
#include "store/shard_reader.hpp"
#include "store/sharding.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

/// The operations of all commits, in order. For each edge the last visible one decides.
class Operations {
public:
    void add(Snapshot snapshot, CommitSource source, const std::vector<Edge>& removed, const std::vector<Edge>& added) {
        for (const Edge& e : removed) all_.push_back({snapshot, source, {e.subject, e.label, e.object}, false});
        for (const Edge& e : added) all_.push_back({snapshot, source, {e.subject, e.label, e.object}, true});
    }
    Model::Edges visible(Snapshot snapshot, const std::vector<StreamBound>& bounds) const {
        Model::Edges edges;
        for (const auto& [sn, source, triple, adds] : all_) {
            const auto hides = [&, &source = source](const StreamBound& bound) {
                return bound.stream == source.stream && source.batch > bound.batch;
            };
            if (sn > snapshot || std::any_of(bounds.begin(), bounds.end(), hides)) continue;
            if (adds)
                edges.insert(triple);
            else
                edges.erase(triple);
        }
        return edges;
    }

    /// Whether a bound hides the commit.
    bool hidden(Snapshot snapshot, const std::vector<StreamBound>& bounds) const {
        return std::any_of(all_.begin(), all_.end(), [&](const Operation& operation) {
            return operation.snapshot == snapshot &&
                   std::any_of(bounds.begin(), bounds.end(), [&](const StreamBound& b) {
                       return b.stream == operation.source.stream && operation.source.batch > b.batch;
                   });
        });
    }

private:
    struct Operation {
        Snapshot snapshot;
        CommitSource source;
        Model::Triple triple;
        bool adds;
    };
    std::vector<Operation> all_;
};

struct Case {
    std::size_t shards, vertices, labels, commits, max_edges;
    std::uint32_t streams;
    bool publish_logs = false;
};

struct Held {
    std::unique_ptr<Source> view;
    Model::Edges expected;
};

class RandomRun {
public:
    RandomRun(const Case& c, std::uint64_t seed)
        : case_(c), random_(seed), fixture_(c.shards, kReserve, c.publish_logs) {
        for (std::size_t i = 0; i < c.vertices; ++i) vertices_.push_back(iri(i));
        for (std::size_t i = 0; i < c.labels; ++i) labels_.push_back(fixture_.label(1000000 + i));
        batches_.resize(c.streams + 1, 0);
        released_.resize(c.streams + 1, -1);
    }

    void run() {
        for (std::size_t i = 0; i < case_.commits && !testing::Test::HasFatalFailure(); ++i) {
            commit();
            if (one_in(3)) open_view();
            if ((one_in(4) && !held_.empty()) || held_.size() > 3) close_view();
            if (case_.streams > 0 && one_in(6)) release();
            check_statistics();
            if (one_in(8)) check_foreign_readers();
            if (one_in(10)) restart();
        }
        while (!held_.empty() && !testing::Test::HasFatalFailure()) close_view();
        for (std::uint32_t s = 1; s <= case_.streams; ++s) fixture_.store->release(s, batches_[s]);
        EXPECT_EQ(fixture_.store->log_bytes(), 0u);
    }

private:
    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    TermId vertex() {
        // A few hubs take a good part of all edges.
        return vertices_[one_in(3) ? below(std::min<std::size_t>(2, vertices_.size())) : below(vertices_.size())];
    }
    std::vector<Edge> some_edges(std::size_t most) {
        std::vector<Edge> edges;
        for (std::size_t n = below(most + 1); n > 0; --n)
            edges.push_back({vertex(), labels_[below(labels_.size())], vertex()});
        return edges;
    }
    /// Edges that are stored, at random; or all edges of a vertex or label.
    std::vector<Edge> some_stored(const Model::Edges& stored) {
        std::vector<Edge> edges;
        const bool whole_label = one_in(8), whole_vertex = one_in(4);
        const Label label = labels_[below(labels_.size())];
        const TermId of = vertex();
        const std::size_t share = 1 + below(6);
        for (const auto& [s, l, o] : stored)
            if (whole_label ? l == label : whole_vertex ? s == of || o == of : one_in(share))
                edges.push_back({s, l, o});
        return edges;
    }

    void commit() {
        const auto stream = static_cast<std::uint32_t>(below(case_.streams + 1));
        const CommitSource source{stream, stream == 0 ? 0 : ++batches_[stream]};
        const Snapshot before = fixture_.store->latest();
        const Model::Edges stored = operations_.visible(before, {});
        std::vector<Edge> added = some_edges(case_.max_edges), removed;
        if (one_in(4)) {  // commits without removals, to lists with and without them
            if (added.empty()) return;
            operations_.add(before + 1, source, {}, added);
            const Snapshot now = fixture_.store->commit(added, source);
            ASSERT_TRUE(now == before || now == before + 1);
            return;
        }
        removed = one_in(2) ? some_stored(stored) : some_edges(case_.max_edges);
        if (one_in(3)) added.clear();
        if (one_in(4)) added.insert(added.end(), removed.begin(), removed.end());
        operations_.add(before + 1, source, removed, added);
        const Changed changed = fixture_.store->change(removed, added, source);
        ASSERT_EQ(changed.snapshot, fixture_.store->latest());
        ASSERT_TRUE(changed.snapshot == before || changed.snapshot == before + 1);
        const Model::Edges now = operations_.visible(before + 1, {});
        std::size_t more = 0, fewer = 0;
        for (const auto& edge : now) more += stored.contains(edge) ? 0 : 1;
        for (const auto& edge : stored) fewer += now.contains(edge) ? 0 : 1;
        ASSERT_EQ(changed.added, more);
        ASSERT_EQ(changed.removed, fewer);
    }

    void check_statistics() {
        const Model::Edges stored = operations_.visible(fixture_.store->latest() + 1, {});
        ASSERT_EQ(fixture_.store->edge_count(), stored.size());
        const auto view = fixture_.store->view();
        for (const Label label : labels_) {
            std::size_t edges = 0;
            std::set<TermId> ends[2];
            for (const auto& [s, l, o] : stored) {
                if (l != label) continue;
                ++edges;
                ends[0].insert(s);
                ends[1].insert(o);
            }
            const LabelStats stats = view->stats(label);
            ASSERT_EQ(stats.edges, edges);
            ASSERT_EQ(stats.subjects, ends[0].size());
            ASSERT_EQ(stats.objects, ends[1].size());
        }
        std::vector<Label> present;
        view->labels(present);
        for (const Label label : present) ASSERT_GT(view->stats(label).edges, 0u);
    }

    /// Readers in other processes see the latest snapshot.
    void check_foreign_readers() {
        const Model::Edges stored = operations_.visible(fixture_.store->latest() + 1, {});
        for (std::size_t shard = 0; shard < case_.shards; ++shard) {
            const ShardReader reader(fixture_.scratch / ("regions/shard-" + std::to_string(shard) + ".region"));
            for (const Label label : labels_) {
                std::map<TermId, std::vector<TermId>> lists;
                for (const auto& [s, l, o] : stored)
                    if (l == label && fixture_.store->shard_of(s) == shard) lists[s].push_back(o);
                std::vector<TermId> subjects;
                for (const auto& [s, values] : lists) subjects.push_back(s);
                ASSERT_EQ(sorted(reader.vertices(label, Dir::Out)), subjects);
                for (const TermId v : vertices_)
                    if (fixture_.store->shard_of(v) == shard)
                        ASSERT_EQ(sorted(reader.neighbours(v, label, Dir::Out)), sorted(lists[v]));
            }
        }
    }

    /// Saves the store, all of it or what has changed, and opens it again.
    void restart() {
        while (!held_.empty() && !testing::Test::HasFatalFailure()) close_view();
        for (std::size_t saves = 1 + below(3); saves > 0; --saves) {
            const std::string here = fixture_.scratch / ("saved-" + std::to_string(++saves_));
            fixture_.store->capture(here, one_in(3) ? "" : saved_)->write();
            if (!saved_.empty()) std::filesystem::remove_all(saved_);
            saved_ = here;
            if (saves > 1) commit();
        }
        const Snapshot latest = fixture_.store->latest();
        fixture_.store.reset();
        fixture_.store = Store::open(saved_, fixture_.scratch / "regions", fixture_.options);
        ASSERT_EQ(fixture_.store->latest(), latest);
        check_statistics();
        open_view();
    }

    void open_view() {
        std::vector<StreamBound> bounds;
        for (std::uint32_t s = 1; s <= case_.streams; ++s)
            if (one_in(2))
                bounds.push_back({s, released_[s] + static_cast<std::int64_t>(below(
                                                        static_cast<std::size_t>(batches_[s] - released_[s] + 1)))});
        held_.push_back({fixture_.store->view(bounds), operations_.visible(fixture_.store->latest(), bounds)});
        check(held_.back());
    }
    void close_view() {
        const std::size_t i = below(held_.size());
        check(held_[i]);
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    void release() {
        const auto s = static_cast<std::uint32_t>(below(case_.streams) + 1);
        released_[s] += static_cast<std::int64_t>(below(static_cast<std::size_t>(batches_[s] - released_[s] + 1)));
        fixture_.store->release(s, released_[s]);
    }
    void check(const Held& held) {
        const std::string found = difference(*held.view, held.expected, vertices_, labels_);
        for (const Label label : labels_)
            ASSERT_EQ(held.view->has_edges(label), std::any_of(held.expected.begin(), held.expected.end(),
                                                               [&](const auto& e) { return std::get<1>(e) == label; }));
        ASSERT_EQ(found, "") << "after commit " << fixture_.store->latest();
    }

    Case case_;
    std::mt19937_64 random_;
    Fixture fixture_;
    Operations operations_;
    std::vector<TermId> vertices_;
    std::vector<Label> labels_;
    std::vector<std::int64_t> batches_, released_;
    std::deque<Held> held_;
    std::size_t saves_ = 0;
    std::string saved_;
};

class StoreRemoval : public testing::TestWithParam<Case> {};

TEST_P(StoreRemoval, ShowsEachViewTheLastOperationOnEachEdgeThatItSees) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const std::uint64_t rounds = 1;
#else
    const std::uint64_t rounds = std::getenv("PENSTOCK_LONG") != nullptr ? 200 : 4;
#endif
    for (std::uint64_t seed = 1; seed <= rounds && !HasFatalFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomRun(GetParam(), seed).run();
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, StoreRemoval,
                         testing::Values(Case{1, 6, 2, 60, 8, 0}, Case{1, 6, 2, 60, 8, 2}, Case{3, 6, 2, 60, 8, 3},
                                         Case{1, 40, 5, 60, 60, 2}, Case{3, 40, 60, 40, 200, 2},
                                         Case{3, 200, 2, 25, 3000, 2}, Case{1, 300, 2, 80, 150, 0},
                                         Case{1, 300, 3, 80, 150, 2}));

INSTANTIATE_TEST_SUITE_P(Published, StoreRemoval,
                         testing::Values(Case{1, 6, 2, 60, 8, 0, true}, Case{1, 6, 2, 60, 8, 2, true},
                                         Case{3, 6, 2, 60, 8, 3, true}, Case{1, 40, 5, 60, 60, 2, true},
                                         Case{3, 200, 2, 25, 3000, 2, true}, Case{1, 300, 3, 80, 150, 2, true}));

TEST(StoreRemovals, AnOlderViewStillSeesWhatWasRemoved) {
    Fixture f;
    const Label knows = f.label(0);
    f.add({{iri(1), knows, iri(2)}});
    const auto before = f.store->view();
    EXPECT_EQ(f.store->change(std::vector<Edge>{{iri(1), knows, iri(2)}}, {}, {}).removed, 1u);
    EXPECT_TRUE(has(*before, iri(1), knows, iri(2)));
    EXPECT_EQ(vertices(*before, knows, Dir::In), std::vector{iri(2)});
    const auto now = f.store->view();
    EXPECT_FALSE(has(*now, iri(1), knows, iri(2)));
    EXPECT_TRUE(before->has_edges(knows));
    EXPECT_FALSE(now->has_edges(knows));
    EXPECT_TRUE(vertices(*now, knows, Dir::In).empty());
    EXPECT_TRUE(labels_of(*now, iri(1), Dir::Out).empty());
    EXPECT_EQ(now->degree(iri(1), knows, Dir::Out), 0u);
}

TEST(StoreRemovals, ARemovalThatChangesNothingUsesNoSnapshot) {
    Fixture f;
    const Label knows = f.label(0);
    f.add({{iri(1), knows, iri(2)}});
    const std::vector<Edge> absent{{iri(1), knows, iri(3)}, {iri(7), knows, iri(2)}};
    const Changed changed = f.store->change(absent, {}, {});
    EXPECT_EQ(changed.snapshot, 1u);
    EXPECT_EQ(changed.removed, 0u);
}

TEST(StoreRemovals, AnEdgeThatIsRemovedAndAddedStays) {
    Fixture f;
    const Label knows = f.label(0);
    const std::vector<Edge> edge{{iri(1), knows, iri(2)}};
    f.add(edge);
    const Changed changed = f.store->change(edge, edge, {});
    EXPECT_EQ(changed.added + changed.removed, 0u);
    EXPECT_TRUE(has(*f.store->view(), iri(1), knows, iri(2)));
}

TEST(StoreRemovals, AValueOfALongListLeavesAndReturnsManyTimes) {
    Fixture f;
    const Label knows = f.label(0);
    std::vector<Edge> all;
    for (std::uint64_t i = 0; i < 5000; ++i) all.push_back({iri(i + 1), knows, iri(0)});
    f.add(all);
    for (int i = 0; i < 2000; ++i) {
        f.store->change(std::vector<Edge>{all[77]}, {}, {});
        f.add({all[77]});
    }
    f.store->change(std::vector<Edge>{all[78]}, {}, {});
    const auto view = f.store->view();
    EXPECT_TRUE(has(*view, iri(78), knows, iri(0)));
    EXPECT_FALSE(has(*view, iri(79), knows, iri(0)));
    EXPECT_EQ(view->degree(iri(0), knows, Dir::In), 4999u);
    EXPECT_EQ(view->stats(knows).subjects, 4999u);
}

TEST(StoreRemovals, BulkLoadsAddToListsWithRemovals) {
    Fixture f;
    const Label knows = f.label(0);
    const std::vector<Edge> edge{{iri(1), knows, iri(2)}};
    f.add({edge[0], {iri(1), knows, iri(3)}});
    f.store->change(std::vector<Edge>{edge[0], {iri(1), knows, iri(3)}}, {}, {});
    BulkLoad load(*f.store, {});
    std::vector<Keyed> out{{iri(1), knows, iri(2)}, {iri(1), knows, iri(4)}};
    std::vector<Keyed> in{{iri(2), knows, iri(1)}, {iri(4), knows, iri(1)}};
    load.append(0, Dir::Out, out);
    load.append(0, Dir::In, in);
    load.publish();
    EXPECT_EQ(neighbours(*f.store->view(), iri(1), knows, Dir::Out), (std::vector{iri(2), iri(4)}));
    EXPECT_EQ(vertices(*f.store->view(), knows, Dir::In), (std::vector{iri(2), iri(4)}));
    EXPECT_EQ(f.store->edge_count(), 2u);
}

TEST(StoreRemovals, AFullRegionLeavesTheGraphAsItWas) {
    Fixture f(1, std::size_t{1} << 21);
    const Label knows = f.label(0);
    f.add({{iri(1), knows, iri(2)}});
    std::vector<Edge> many;
    for (std::uint64_t i = 0; i < 40000; ++i) many.push_back({iri(i + 10), knows, iri(i + 11)});
    EXPECT_THROW(f.store->change(std::vector<Edge>{{iri(1), knows, iri(2)}}, many, {}), LimitError);
    EXPECT_EQ(f.store->edge_count(), 1u);
    EXPECT_TRUE(has(*f.store->view(), iri(1), knows, iri(2)));
    EXPECT_EQ(f.store->change(std::vector<Edge>{{iri(1), knows, iri(2)}}, {}, {}).removed, 1u);
    EXPECT_EQ(f.store->view()->stats(knows).subjects, 0u);
}

TEST(StoreRemovals, ListsAreRewrittenInARegionThatIsNearlyFull) {
    Fixture f(1, 10 << 20, true);
    const Label knows = f.label(1);
    std::vector<Edge> edges, removed;
    for (std::uint64_t k = 0; k < 100'000; ++k)
        edges.push_back({iri(1), knows, make_id(Tag::Integer, k % 97 * 2000 + k)});
    f.add(edges);
    removed.assign(edges.begin(), edges.begin() + 20'000);
    f.store->change(removed, {}, {});
    const std::uint64_t used = f.store->used_bytes();
    for (std::uint64_t n = 0; n < 50; ++n) f.add({{iri(2), knows, iri(1000 + n)}});
    const auto view = f.store->view();
    EXPECT_EQ(neighbours(*view, iri(1), knows, Dir::Out).size(), 80'000u);
    EXPECT_LT(f.store->used_bytes(), used + (1 << 20));
    std::printf("%lu bytes in use before, %lu after\n", used, f.store->used_bytes());
}

TEST(StoreRemovals, PartsOfAStoreShowTheSameGraphAndSaveIt) {
    const Case sizes{3, 12, 2, 60, 12, 2};
    std::mt19937_64 random(1);
    const ScratchDirectory scratch;
    std::vector<std::unique_ptr<Store>> parts;
    for (const std::vector<std::uint32_t>& own : {std::vector<std::uint32_t>{0, 2}, {1}}) {
        parts.push_back(std::make_unique<Store>("", StoreOptions{.shards = 3, .own = own, .reserve_bytes = kReserve}));
        for (Label l = 1; l <= 2; ++l) ASSERT_EQ(parts.back()->labels().intern(0, iri(l)), l);
    }
    Operations operations;
    std::vector<TermId> vertices;
    for (std::size_t i = 0; i < sizes.vertices; ++i) vertices.push_back(iri(i));
    const auto some_edges = [&](std::size_t most) {
        std::vector<Edge> edges;
        for (std::size_t n = random() % (most + 1); n > 0; --n)
            edges.push_back({iri(random() % 12), static_cast<Label>(1 + random() % 2), iri(random() % 12)});
        return edges;
    };
    for (Snapshot snapshot = 1; snapshot <= sizes.commits; ++snapshot) {
        const CommitSource source{static_cast<std::uint32_t>(random() % 3), snapshot};
        const auto removed = some_edges(40), added = some_edges(12);
        operations.add(snapshot, source, removed, added);
        std::vector<Snapshot> excluded;
        const std::vector<StreamBound> bounds{{1, snapshot / 2}};
        for (auto& part : parts) {
            ASSERT_EQ(part->apply(snapshot, removed, added, source).snapshot, snapshot);
            if (snapshot % 20 == 7) {
                part->save(scratch / "part");
                part = Store::open(scratch / "part", "", kReserve);
            }
        }
        for (Snapshot s = 1; s <= snapshot; ++s)
            if (operations.hidden(s, bounds)) excluded.push_back(s);
        for (const bool all : {true, false}) {
            const Model::Edges expected = operations.visible(snapshot, all ? std::vector<StreamBound>{} : bounds);
            for (std::size_t p = 0; p < parts.size(); ++p) {
                const auto view = parts[p]->view_part(snapshot, all ? std::vector<Snapshot>{} : excluded);
                for (const TermId v : vertices) {
                    if ((parts[p]->shard_of(v) == 1) != (p == 1)) continue;
                    for (Label l = 1; l <= 2; ++l)
                        for (const Dir dir : {Dir::Out, Dir::In}) {
                            std::vector<TermId> want;
                            for (const auto& [subject, label, object] : expected)
                                if (label == l && (dir == Dir::Out ? subject : object) == v)
                                    want.push_back(dir == Dir::Out ? object : subject);
                            ASSERT_EQ(neighbours(*view, v, l, dir), sorted(want)) << "commit " << snapshot;
                        }
                }
            }
        }
    }
}

}  // namespace
}  // namespace penstock::test
