// Random commits against a plain model, with many views held open while commits continue.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "store_fixture.hpp"

namespace penstock::test {
namespace {

struct Case {
    std::size_t shards;
    std::size_t vertices;
    std::size_t labels;
    std::size_t commits;
    std::size_t max_edges;
    std::uint32_t streams;
};

struct Held {
    std::unique_ptr<Source> view;
    Model::Edges expected;
};

class ModelRun {
public:
    ModelRun(const Case& c, std::uint64_t seed) : case_(c), random_(seed), fixture_(c.shards) {
        for (std::size_t i = 0; i < c.vertices; ++i) vertices_.push_back(iri(i));
        for (std::size_t i = 0; i < c.labels; ++i) labels_.push_back(fixture_.label(1000000 + i));
        batches_.resize(c.streams + 1, 0);
        released_.resize(c.streams + 1, -1);
    }

    void run() {
        for (std::size_t i = 0; i < case_.commits && !testing::Test::HasFatalFailure(); ++i) {
            commit();
            if (one_in(3)) open_view();
            if (one_in(4) && !held_.empty()) close_view();
            if (case_.streams > 0 && one_in(6)) release();
        }
        while (!held_.empty() && !testing::Test::HasFatalFailure()) close_view();
        for (std::uint32_t s = 1; s <= case_.streams; ++s) fixture_.store->release(s, batches_[s]);
        EXPECT_EQ(fixture_.store->log_bytes(), 0u);
        EXPECT_EQ(fixture_.store->edge_count(), model_.visible(fixture_.store->latest(), {}).size());
    }

private:
    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    TermId vertex() {
        // A few hubs take a good part of all edges.
        return vertices_[one_in(3) ? below(std::min<std::size_t>(2, vertices_.size())) : below(vertices_.size())];
    }

    void commit() {
        std::vector<Edge> edges;
        for (std::size_t n = below(case_.max_edges) + 1; n > 0; --n)
            edges.push_back({vertex(), labels_[below(labels_.size())], vertex()});
        const auto stream = static_cast<std::uint32_t>(below(case_.streams + 1));
        const CommitSource source{stream, stream == 0 ? 0 : ++batches_[stream]};
        const Snapshot before = fixture_.store->latest();
        const Snapshot now = fixture_.store->commit(edges, source);
        ASSERT_TRUE(now == before || now == before + 1);
        model_.add(now, edges, source);
    }

    void open_view() {
        std::vector<StreamBound> bounds;
        for (std::uint32_t s = 1; s <= case_.streams; ++s)
            if (one_in(2))
                bounds.push_back({s, released_[s] + static_cast<std::int64_t>(below(
                                                        static_cast<std::size_t>(batches_[s] - released_[s] + 1)))});
        held_.push_back({fixture_.store->view(bounds), model_.visible(fixture_.store->latest(), bounds)});
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
        ASSERT_EQ(found, "") << "after commit " << fixture_.store->latest();
    }

    Case case_;
    std::mt19937_64 random_;
    Fixture fixture_;
    Model model_;
    std::vector<TermId> vertices_;
    std::vector<Label> labels_;
    std::vector<std::int64_t> batches_, released_;
    std::deque<Held> held_;
};

class StoreModel : public testing::TestWithParam<Case> {};

TEST_P(StoreModel, ShowsEachViewWhatTheModelShows) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const std::uint64_t rounds = 1;
#else
    const std::uint64_t rounds = std::getenv("PENSTOCK_LONG") != nullptr ? 200 : 4;
#endif
    for (std::uint64_t seed = 1; seed <= rounds && !HasFatalFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        ModelRun(GetParam(), seed).run();
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, StoreModel,
                         testing::Values(Case{1, 6, 2, 60, 8, 0}, Case{1, 6, 2, 60, 8, 2}, Case{3, 6, 2, 60, 8, 3},
                                         Case{1, 40, 5, 60, 60, 2}, Case{3, 40, 60, 40, 200, 2},
                                         Case{3, 200, 2, 25, 3000, 2}));

}  // namespace
}  // namespace penstock::test
