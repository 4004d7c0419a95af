// Threads that read snapshots, with and without bounds, while another thread commits. Meant for ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "store_fixture.hpp"

namespace penstock::test {
namespace {

constexpr std::uint32_t kStreams = 2;
constexpr std::uint64_t kFirst = 100;  // vertices from here on have one edge each

TermId member(std::uint64_t vertex, std::uint64_t index) { return make_id(Tag::Integer, (vertex << 28) | index); }

/// Stream s appends to the list of vertex s, and makes new vertices; how far it was after each batch is on record.
class Writer {
public:
    explicit Writer(Fixture& fixture) : fixture_(fixture), hub_(fixture.label(0)), leaf_(fixture.label(1)) {
        for (auto& lengths : lengths_) lengths.push_back(0);
    }

    void step() {
        const auto stream = static_cast<std::uint32_t>(1 + random_() % kStreams);
        std::vector<Edge> edges;
        std::uint64_t length;
        std::int64_t batch;
        {
            std::scoped_lock lock(mutex_);
            auto& lengths = lengths_[stream];
            length = lengths.back() + 1 + random_() % 20;
            for (std::uint64_t k = lengths.back(); k < length; ++k)
                edges.push_back({iri(stream), hub_, member(stream, k)});
            batch = static_cast<std::int64_t>(lengths.size());
            lengths.push_back(length);
        }
        for (std::uint64_t n = random_() % 30; n > 0; --n, ++vertices_)
            edges.push_back({iri(vertices_), leaf_, member(vertices_, 0)});
        fixture_.store->commit(edges, {stream, batch});
        std::scoped_lock lock(mutex_);
        closed_[stream] = batch;
        if (random_() % 64 == 0)
            fixture_.store->release(stream, released_[stream] = std::max<std::int64_t>(0, batch - 50));
    }

    /// A bound that readers may request, and the length that stream's list has under it. Opens the view before the
    /// stream is released any further.
    std::unique_ptr<Source> bounded(std::uint32_t stream, std::mt19937_64& random, std::uint64_t& length) {
        std::scoped_lock lock(mutex_);
        const auto range = static_cast<std::uint64_t>(closed_[stream] - released_[stream] + 1);
        const StreamBound bound{stream, released_[stream] + static_cast<std::int64_t>(random() % range)};
        length = lengths_[stream][static_cast<std::size_t>(bound.batch)];
        return fixture_.store->view({&bound, 1});
    }
    Label hub() const { return hub_; }
    Label leaf() const { return leaf_; }

private:
    Fixture& fixture_;
    Label hub_, leaf_;
    std::mt19937_64 random_{3};
    std::uint64_t vertices_ = kFirst;
    std::mutex mutex_;
    std::vector<std::uint64_t> lengths_[kStreams + 1];
    std::int64_t closed_[kStreams + 1] = {};
    std::int64_t released_[kStreams + 1] = {};
};

void expect_list(const Source& view, std::uint64_t stream, Label label, std::uint64_t length) {
    const auto values = neighbours(view, iri(stream), label, Dir::Out);
    ASSERT_EQ(values.size(), length);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], member(stream, i));
}

/// What a view without bounds shows does not change, and no vertex is without its edge.
void read_latest(Fixture& fixture, const Writer& writer) {
    const auto view = fixture.store->view();
    const auto length = view->degree(iri(1), writer.hub(), Dir::Out);
    const auto all = vertices(*view, writer.leaf(), Dir::Out);
    for (int round = 0; round < 2; ++round) {
        expect_list(*view, 1, writer.hub(), length);
        ASSERT_EQ(vertices(*view, writer.leaf(), Dir::Out), all);
    }
    for (std::size_t i = 0; i < all.size(); i += 1 + all.size() / 8) {
        ASSERT_EQ(all[i], iri(kFirst + i));
        ASSERT_TRUE(has(*view, all[i], writer.leaf(), member(kFirst + i, 0)));
        ASSERT_EQ(labels_of(*view, all[i], Dir::Out), std::vector{writer.leaf()});
    }
    ASSERT_EQ(view->degree(iri(kFirst + all.size()), writer.leaf(), Dir::Out), 0u) << "a vertex of a later snapshot";
}

void read_bounded(Writer& writer, std::mt19937_64& random) {
    std::uint64_t length = 0;
    const auto stream = static_cast<std::uint32_t>(1 + random() % kStreams);
    const auto view = writer.bounded(stream, random, length);
    for (int round = 0; round < 2; ++round) expect_list(*view, stream, writer.hub(), length);
    vertices(*view, writer.leaf(), Dir::In);
}

TEST(StoreThreads, ReadTheirSnapshotsWhileTheStoreIsWritten) {
    Fixture fixture(2);
    Writer writer(fixture);
    writer.step();
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> views{0};
    const auto read = [&](std::uint64_t seed) {
        for (std::mt19937_64 random(seed); !stop && !testing::Test::HasFatalFailure(); ++views) {
            read_latest(fixture, writer);
            read_bounded(writer, random);
        }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) threads.emplace_back(read, seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) writer.step();
    stop = true;
    for (auto& thread : threads) thread.join();
    EXPECT_GT(views, 10u);
}

}  // namespace
}  // namespace penstock::test
