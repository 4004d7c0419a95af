// Random commits to stores that keep parts of a graph, and views over them through a plane, against a plain model.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "errors.hpp"
#include "remote_fixture.hpp"

namespace penstock::test {
namespace {

struct Case {
    std::size_t shards, nodes;
    bool copying;
    std::size_t vertices, labels, commits, max_edges;
    std::uint32_t streams;
    std::size_t known_bytes = remote::RemoteStore::kKnownBytes;
    bool removes = false;
    bool tears = false;  // words of a read are of two moments
};

struct Held {
    std::unique_ptr<Source> view;
    Model::Edges expected;
};

class ModelRun {
public:
    ModelRun(const Case& c, std::uint64_t seed)
        : case_(c), random_(seed), fixture_(c.shards, c.nodes, c.copying, c.known_bytes) {
        for (std::size_t i = 0; i < c.vertices; ++i) vertices_.push_back(iri(i));
        for (std::size_t i = 0; i < c.labels; ++i) labels_.push_back(fixture_.label(1000000 + i));
        batches_.resize(c.streams + 1, 0);
        released_.resize(c.streams + 1, -1);
        at_.resize(c.nodes, 0);
        if (c.tears)
            for (const auto& plane : fixture_.copies)
                plane->meanwhile = [this] {
                    if (may_write_ > 0 && one_in(4)) --may_write_, write();
                };
    }

    void run() {
        for (std::size_t i = 0; i < case_.commits && !testing::Test::HasFatalFailure(); ++i) {
            write();
            if (one_in(3)) open_view();
            if ((one_in(4) && !held_.empty()) || held_.size() > 3) close_view();
            if (one_in(4)) fixture_.renew();
            if (case_.streams > 0 && one_in(6)) release();
        }
        while (!held_.empty() && !testing::Test::HasFatalFailure()) close_view();
        for (const auto& plane : fixture_.copies) plane->meanwhile = {};
        for (std::uint32_t s = 1; s <= case_.streams; ++s) fixture_.release(s, released_[s] = batches_[s]);
        for (std::size_t n = 0; n < case_.nodes; ++n) catch_up(n, log_.size());
        open_view();
        EXPECT_EQ(fixture_.remote->edge_count(), model_.visible(fixture_.remote->latest(), {}).size());
        held_.clear();
        fixture_.leases.clear();
        for (auto& store : fixture_.stores) EXPECT_EQ(store->log_bytes(), 0u);
    }
    /// The shards of which a commit has rewritten lists.
    std::size_t rewritten() const {
        std::size_t shards = 0;
        for (std::uint32_t s = 0; s < case_.shards; ++s) {
            const dataplane::MappedRegion region(
                fixture_.directory(s % case_.nodes) + "/shard-" + std::to_string(s) + ".region", kReserve);
            layout::Header header{};
            region.copy(0, sizeof header, reinterpret_cast<std::byte*>(&header));
            shards += header.rewritten != 0;
        }
        return shards;
    }

private:
    struct Commit {
        std::vector<Edge> edges, removed;
        CommitSource source;
    };
    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    TermId vertex() {
        return vertices_[one_in(3) ? below(std::min<std::size_t>(2, vertices_.size())) : below(vertices_.size())];
    }

    /// A new commit in the log; each node applies the log independently.
    void write() {
        std::vector<Edge> edges, removed;
        for (std::size_t n = below(case_.max_edges) + 1; n > 0; --n)
            edges.push_back({vertex(), labels_[below(labels_.size())], vertex()});
        if (case_.removes && one_in(2)) removed = some_stored();
        const auto stream = static_cast<std::uint32_t>(below(case_.streams + 1));
        const CommitSource source{stream, stream == 0 ? 0 : ++batches_[stream]};
        log_.push_back({edges, removed, source});
        model_.remove(static_cast<Snapshot>(log_.size()), removed, source);
        model_.add(static_cast<Snapshot>(log_.size()), edges, source);
        for (std::size_t n = 0; n < case_.nodes; ++n) catch_up(n, log_.size() - (one_in(3) ? 1 : 0));
    }
    void catch_up(std::size_t node, std::size_t until) {
        for (; at_[node] < until; ++at_[node]) {
            const auto& [edges, removed, source] = log_[at_[node]];
            const auto snapshot = static_cast<Snapshot>(at_[node] + 1);
            if (removed.empty())
                fixture_.apply(node, snapshot, edges, source);
            else
                fixture_.apply(node, snapshot, removed, edges, source);
        }
    }
    /// Edges that are stored, at random; or all edges of a vertex or label.
    std::vector<Edge> some_stored() {
        std::vector<Edge> edges;
        const bool whole_label = one_in(8), whole_vertex = one_in(4);
        const Label label = labels_[below(labels_.size())];
        const TermId of = vertex();
        const std::size_t share = 1 + below(6);
        for (const auto& [s, l, o] : model_.visible(static_cast<Snapshot>(log_.size()), {}))
            if (whole_label ? l == label : whole_vertex ? s == of || o == of : one_in(share))
                edges.push_back({s, l, o});
        return edges;
    }

    void open_view() {
        std::vector<StreamBound> bounds;
        for (std::uint32_t s = 1; s <= case_.streams; ++s)
            if (one_in(2))
                bounds.push_back({s, released_[s] + static_cast<std::int64_t>(below(
                                                        static_cast<std::size_t>(batches_[s] - released_[s] + 1)))});
        const auto stable = static_cast<Snapshot>(*std::min_element(at_.begin(), at_.end()));
        ASSERT_EQ(fixture_.remote->latest(), stable);
        held_.push_back({fixture_.remote->view(bounds), model_.visible(stable, bounds)});
        check(held_.back());
    }
    void close_view() {
        const std::size_t i = below(held_.size());
        check(held_[i]);
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    void release() {
        fixture_.renew();
        const auto s = static_cast<std::uint32_t>(below(case_.streams) + 1);
        released_[s] += static_cast<std::int64_t>(below(static_cast<std::size_t>(batches_[s] - released_[s] + 1)));
        fixture_.release(s, released_[s]);
    }
    void check(const Held& held) {
        may_write_ = 4;
        const std::string found = difference(*held.view, held.expected, vertices_, labels_);
        may_write_ = 0;
        ASSERT_EQ(found, "") << "after commit " << log_.size();
    }

    Case case_;
    std::mt19937_64 random_;
    NodesFixture fixture_;
    Model model_;
    std::vector<Commit> log_;
    std::vector<std::size_t> at_;  // by node: how much of the log it has applied
    std::vector<TermId> vertices_;
    std::vector<Label> labels_;
    std::vector<std::int64_t> batches_, released_;
    std::deque<Held> held_;
    int may_write_ = 0;  // commits while a view is read
};

class RemoteView : public testing::TestWithParam<Case> {};

TEST_P(RemoteView, ShowsEachViewWhatTheModelShows) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const std::uint64_t rounds = 1;
#else
    const std::uint64_t rounds = std::getenv("PENSTOCK_LONG") != nullptr ? 50 : 1;
#endif
    std::size_t rewritten = 0;
    for (std::uint64_t seed = 1; seed <= rounds && !HasFatalFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        ModelRun run(GetParam(), seed);
        run.run();
        rewritten += run.rewritten();
    }
    if (GetParam().removes) {
        EXPECT_GT(rewritten, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, RemoteView,
                         testing::Values(Case{1, 1, false, 6, 2, 60, 8, 0}, Case{1, 1, true, 6, 2, 60, 8, 2},
                                         Case{3, 3, true, 6, 2, 60, 8, 3}, Case{4, 2, false, 6, 2, 60, 8, 3},
                                         Case{1, 1, true, 40, 5, 60, 60, 2}, Case{6, 3, true, 40, 60, 40, 200, 2},
                                         Case{3, 3, true, 200, 2, 25, 3000, 2},
                                         Case{2, 2, true, 40, 5, 60, 60, 2, 400 << 10},
                                         Case{2, 2, true, 40, 5, 60, 60, 2, 0}));

constexpr std::size_t kKnown = remote::RemoteStore::kKnownBytes;
INSTANTIATE_TEST_SUITE_P(WithRemovals, RemoteView,
                         testing::Values(Case{1, 1, false, 6, 2, 60, 8, 0, kKnown, true},
                                         Case{1, 1, true, 6, 2, 60, 8, 2, kKnown, true},
                                         Case{3, 3, true, 6, 2, 60, 8, 3, kKnown, true},
                                         Case{4, 2, false, 6, 2, 60, 8, 3, kKnown, true},
                                         Case{1, 1, true, 40, 5, 60, 60, 2, kKnown, true},
                                         Case{6, 3, true, 40, 60, 40, 200, 2, kKnown, true},
                                         Case{3, 3, true, 200, 2, 25, 3000, 2, kKnown, true},
                                         Case{2, 2, true, 40, 5, 60, 60, 2, 400 << 10, true},
                                         Case{1, 1, true, 6, 2, 60, 8, 2, kKnown, true, true},
                                         Case{3, 3, true, 6, 2, 60, 8, 3, kKnown, true, true},
                                         Case{1, 1, true, 40, 5, 60, 60, 2, kKnown, true, true},
                                         Case{2, 2, true, 40, 5, 60, 60, 2, 400 << 10, true, true}));

TEST(RemoteStore, ReadsAMorselInThreeRounds) {
    NodesFixture fixture(8, 2, true);
    std::vector<Edge> edges;
    std::vector<TermId> keys;
    for (std::uint64_t v = 0; v < 1000; ++v) {
        keys.push_back(iri(v));
        for (std::uint64_t k = 0; k < 3; ++k) edges.push_back({iri(v), fixture.label(1), iri(10000 + v * 3 + k)});
    }
    fixture.add(edges);
    const auto view = fixture.remote->view();
    std::uint64_t reads[2];
    for (std::uint64_t& read : reads) {
        const std::uint64_t rounds = fixture.remote->rounds(), before = fixture.reads();
        Matches matches;
        view->expand(keys, fixture.label(1), Dir::Out, matches);
        EXPECT_EQ(matches.values.size(), 3000u);
        EXPECT_LE(fixture.remote->rounds() - rounds, 3u);
        read = fixture.reads() - before;
    }
    EXPECT_GT(reads[0], 2000u);                    // a bucket may be shared; a record and a list for each key
    EXPECT_LT(reads[1], reads[0] - reads[0] / 5);  // it knows where most records lie
}

TEST(RemoteStore, AsksOnlyWhetherListsThatItKnowsHaveGrown) {
    NodesFixture fixture(4, 2, true);
    std::vector<Edge> edges;
    std::vector<TermId> keys;
    for (std::uint64_t v = 1; v <= 100; ++v) {
        keys.push_back(iri(v));
        for (std::uint64_t k = 0; k < v; ++k) edges.push_back({iri(v), fixture.label(1), iri(10000 + k)});
    }
    fixture.add(edges);
    Matches matches;
    const auto expand = [&](const Source& view) {
        const std::uint64_t rounds = fixture.remote->rounds(), before = fixture.reads();
        matches.clear();
        view.expand(keys, fixture.label(1), Dir::Out, matches);
        return std::pair{fixture.remote->rounds() - rounds, fixture.reads() - before};
    };
    expand(*fixture.remote->view());
    using Read = std::pair<std::uint64_t, std::uint64_t>;
    EXPECT_EQ(expand(*fixture.remote->view()), (Read{0, 0}));  // nothing was committed since
    fixture.add({{iri(10), fixture.label(1), iri(77)}, {iri(1000), fixture.label(1), iri(77)}});
    const auto view = fixture.remote->view();
    EXPECT_EQ(expand(*view), (Read{3, 100 + 2}));  // entries; of one list the link, and the extent behind it
    EXPECT_EQ(matches.values.size(), edges.size() + 1);
    EXPECT_EQ(expand(*view), (Read{0, 0}));
    fixture.add({{iri(1000), fixture.label(1), iri(78)}});
    EXPECT_EQ(expand(*fixture.remote->view()), (Read{1, 100}));
}

TEST(RemoteStore, ALongListThatGrowsIsReadAgainInFewRounds) {
    NodesFixture fixture(1, 1, true);
    const TermId hub = iri(1);
    std::uint64_t next = 10, longest = 0;
    Matches matches;
    const auto expand = [&] {
        const auto view = fixture.remote->view();
        const std::uint64_t rounds = fixture.remote->rounds();
        matches.clear();
        view->expand({&hub, 1}, fixture.label(1), Dir::Out, matches);
        EXPECT_EQ(matches.values.size(), next - 10);
        return fixture.remote->rounds() - rounds;
    };
    for (int commit = 0; commit < 300; ++commit) {
        std::vector<Edge> edges;
        for (int i = 0; i <= commit % 7; ++i) edges.push_back({hub, fixture.label(1), iri(next++)});
        fixture.add(edges);
        if (commit > 0) longest = std::max(longest, expand());
        if (commit == 0) expand();
    }
    EXPECT_LE(longest, 3u);  // its entry; values and link; the extent behind it
}

TEST(RemoteStore, AnUnboundKeyIsNotTakenForAnIndexVertex) {
    NodesFixture fixture(2, 2, true);
    const Label label = fixture.label(1);
    fixture.add({{iri(1), label, iri(2)}, {iri(3), label, iri(4)}});
    const TermId unbound[] = {kUnbound, kUnbound};
    for (int i = 0; i < 3; ++i) {
        const auto view = fixture.remote->view();
        Matches matches;
        view->expand(unbound, label, Dir::Out, matches);
        EXPECT_TRUE(matches.values.empty());
        std::vector<TermId> subjects;
        view->vertices(label, Dir::Out, subjects);
        EXPECT_EQ(subjects.size(), 2u);
        std::uint8_t found[] = {0, 0};
        view->contains(unbound, label, unbound, found);
        EXPECT_EQ(found[0] + found[1], 0);
    }
}

TEST(RemoteStore, ViewsOfASnapshotThatWasKnownBeginByOneRead) {
    NodesFixture fixture(4, 2, true);
    const auto rounds_of_view = [&](std::optional<Snapshot> at = {}) {
        const std::uint64_t before = fixture.remote->rounds();
        fixture.remote->view({}, at);
        return fixture.remote->rounds() - before;
    };
    const auto add = [&] { return fixture.add({{iri(1), fixture.label(1), iri(2)}}); };
    add();
    EXPECT_EQ(rounds_of_view(), 2u);
    EXPECT_EQ(rounds_of_view(), 1u);
    add();
    EXPECT_EQ(rounds_of_view(), 2u);
    const Snapshot second = fixture.remote->latest();  // which is known by that
    add();
    EXPECT_EQ(rounds_of_view(second), 1u);
}

TEST(RemoteStore, StartsFromTheIndexOfAllShardsTogether) {
    NodesFixture fixture(16, 4, true);
    std::vector<Edge> edges;
    for (std::uint64_t v = 0; v < 50 * 16; ++v) edges.push_back({iri(v), fixture.label(1), iri(v + 1)});
    fixture.add(edges);
    const auto view = fixture.remote->view();
    const std::uint64_t rounds = fixture.remote->rounds();
    std::vector<TermId> subjects;
    view->vertices(fixture.label(1), Dir::Out, subjects);
    EXPECT_EQ(subjects.size(), edges.size());
    EXPECT_LE(fixture.remote->rounds() - rounds, 3u);  // rows of the label, first extents, the rest
}

TEST(RemoteStore, FindsEveryListOfMoreKeysThanItsLocationCacheHolds) {
    NodesFixture fixture(4, 2, true);
    std::vector<Edge> edges;
    std::vector<TermId> keys;
    for (std::uint64_t v = 0; v < 2 * remote::LocationCache::kPlaces; ++v) {
        keys.push_back(iri(v));
        edges.push_back({iri(v), fixture.label(1), iri(v + 1)});
    }
    fixture.add(edges);
    const auto view = fixture.remote->view();
    for (int i = 0; i < 3; ++i) {
        Matches matches;
        view->expand(keys, fixture.label(1), Dir::Out, matches);
        ASSERT_EQ(matches.values.size(), keys.size());
        for (std::uint64_t v = 0; v < keys.size(); ++v) ASSERT_EQ(matches.values[v], iri(v + 1));
    }
}

TEST(RemoteStore, RefusesToReadWithoutALease) {
    NodesFixture fixture(2, 2, true);
    fixture.add({{iri(1), fixture.label(1), iri(2)}});
    const auto view = fixture.remote->view();
    fixture.remote->lease(0, std::chrono::steady_clock::now() - std::chrono::milliseconds(1));
    Matches matches;
    const TermId key = iri(1);
    EXPECT_THROW(view->expand({&key, 1}, fixture.label(1), Dir::Out, matches), dataplane::Error);
    EXPECT_THROW(fixture.remote->view(), dataplane::Error);
}

template <class Read>
std::optional<dataplane::Fault> fault_of(Read read) {
    try {
        read();
    } catch (const dataplane::Error& error) {
        return error.fault;
    }
    return std::nullopt;
}

TEST(RemoteStore, ReadsAtAGivenSnapshotWhateverNodesAreAheadOfIt) {
    NodesFixture fixture(2, 2, true);
    const Label label = fixture.label(1);
    const auto seen = [&](std::optional<Snapshot> at) {
        const auto view = fixture.remote->view({}, at);
        std::vector<TermId> subjects, objects;
        view->edges(label, subjects, objects);
        return subjects.size();
    };
    fixture.add({{iri(1), label, iri(2)}});
    const Snapshot first = fixture.stores[0]->latest();
    fixture.add({{iri(3), label, iri(4)}});
    EXPECT_EQ(seen(first), 1u);
    EXPECT_EQ(seen(first + 1), 2u);
    fixture.apply(0, first + 2, {{iri(5), label, iri(6)}}, {});
    EXPECT_EQ(fault_of([&] { fixture.remote->view({}, first + 2); }), dataplane::Fault::Behind);
    fixture.apply(1, first + 2, {{iri(5), label, iri(6)}}, {});
    EXPECT_EQ(seen(first + 2), 3u);
    EXPECT_EQ(fixture.remote->oldest_needed(first + 7), first + 7);  // no view is open
    const auto open = fixture.remote->view({}, first + 2);
    EXPECT_EQ(fixture.remote->oldest_needed(first + 7), first + 2);
}

TEST(RemoteStore, CannotReadANodeThatWasDetached) {
    NodesFixture fixture(2, 2, true);
    fixture.add({{iri(1), fixture.label(1), iri(2)}});
    fixture.remote->detach(1);
    EXPECT_EQ(fault_of([&] { fixture.remote->view(); }), dataplane::Fault::Disconnected);
}

TEST(RemoteStore, NoticesThatAShardWasReplaced) {
    NodesFixture fixture(1, 1, true);
    fixture.add({{iri(1), fixture.label(1), iri(2)}});
    fixture.leases.clear();
    fixture.stores[0].reset();
    EXPECT_EQ(fault_of([&] { fixture.remote->view(); }), dataplane::Fault::Retired);
}

TEST(StorePart, CommitsMustFollowOneAnother) {
    NodesFixture fixture(2, 2, true);
    EXPECT_THROW(fixture.apply(0, 2, {{iri(1), 1, iri(2)}}, {}), DataError);
    EXPECT_THROW(fixture.stores[0]->commit(std::vector<Edge>{{iri(1), 1, iri(2)}}, {}), Error);
    EXPECT_THROW(fixture.stores[0]->view(), Error);
}

TEST(StorePart, ComesBackFromWhatItSaved) {
    NodesFixture fixture(3, 1, true);
    StoreOptions options{.shards = 4, .own = {1, 3}, .reserve_bytes = kReserve, .publish_logs = true};
    Store part(fixture.scratch / "part", options);
    std::vector<Edge> edges;
    for (std::uint64_t v = 0; v < 100; ++v) edges.push_back({iri(v), 1, iri(v + 1)});
    part.apply(1, edges, {});
    part.apply(2, std::vector<Edge>{{iri(1), 2, iri(2)}}, {1, 4});
    part.save(fixture.scratch / "saved");
    const auto again = Store::open(fixture.scratch / "saved", fixture.scratch / "again", options);
    EXPECT_EQ(again->latest(), 2u);
    EXPECT_EQ(again->edge_count(), part.edge_count());
    EXPECT_GT(again->log_bytes(), 0u);
    again->apply(3, edges, {});
    EXPECT_EQ(again->edge_count(), part.edge_count());
}

}  // namespace
}  // namespace penstock::test
