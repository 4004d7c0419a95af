// Readers in another process, and readers in other threads, while the store is written at full speed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "errors.hpp"
#include "store/shard_reader.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::seconds test_time() { return std::chrono::seconds(std::getenv("PENSTOCK_LONG") != nullptr ? 60 : 2); }

// Every list shows by itself whether it is whole: value k of vertex v is member(v, k).
TermId member(std::uint64_t vertex, std::uint64_t index) { return make_id(Tag::Integer, (vertex << 28) | index); }

/// Appends to a few long lists and to ever new vertices, so that lists, directories and the table all grow.
class Injector {
public:
    explicit Injector(Fixture& fixture) : fixture_(fixture) {
        for (std::uint64_t i = 0; i < 60; ++i) labels_.push_back(fixture.label(i));
    }
    void step() {
        std::vector<Edge> edges;
        for (std::uint64_t hub = 0; hub < kHubs; ++hub)
            for (std::uint64_t n = random_() % 40; n > 0; --n)
                edges.push_back({iri(hub), labels_[0], member(hub, lengths_[hub]++)});
        for (std::uint64_t n = random_() % 60; n > 0; --n, ++vertices_)
            edges.push_back({iri(vertices_), labels_[1], member(vertices_, 0)});
        // One vertex gets label after label: more of them than a directory is scanned for.
        if (labelled_ < labels_.size())
            edges.push_back({iri(kLabelled), labels_[labelled_], member(kLabelled, 0)}), ++labelled_;
        fixture_.store->commit(edges, {});
        ++steps_;
        fixture_.store->set_vts(1 + steps_ % 100, static_cast<std::int64_t>(steps_));
    }

    static constexpr std::uint64_t kHubs = 4, kLabelled = 90, kFirst = 100;

private:
    Fixture& fixture_;
    std::mt19937_64 random_{7};
    std::vector<Label> labels_;
    std::uint64_t lengths_[kHubs] = {};
    std::uint64_t vertices_ = kFirst;
    std::uint64_t labelled_ = 2;
    std::uint32_t steps_ = 0;
};

std::string verify(const std::vector<TermId>& values, std::uint64_t vertex, std::size_t& longest) {
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != member(vertex, i))
            return "torn list of vertex " + std::to_string(vertex) + " at " + std::to_string(i);
    if (values.size() < longest) return "list of vertex " + std::to_string(vertex) + " became shorter";
    longest = values.size();
    return {};
}

/// The other process, on one incarnation of the region. Returns what is wrong.
std::string read_and_verify(const ShardReader& reader, Clock::time_point end) {
    std::mt19937_64 random(11);
    std::size_t lengths[Injector::kHubs] = {}, all = 0, reads = 0;
    Snapshot latest = 0;
    for (; Clock::now() < end && !reader.retired(); ++reads) {
        if (reader.latest() < latest) return "snapshots went back";
        latest = reader.latest();
        const std::uint64_t hub = reads % Injector::kHubs;
        std::string wrong = verify(reader.neighbours(iri(hub), 1, Dir::Out), hub, lengths[hub]);
        if (!wrong.empty()) return wrong;
        if (reads % 16 == 0) {
            const auto vertices = reader.vertices(2, Dir::Out);
            if (vertices.size() < all) return "vertices disappeared";
            all = vertices.size();
            for (std::size_t i = 0; i < all; ++i)
                if (vertices[i] != iri(Injector::kFirst + i)) return "torn list of vertices";
        }
        if (all > 0) {  // what was listed must be found, however the table grew since
            const std::uint64_t v = Injector::kFirst + random() % all;
            if (reader.neighbours(iri(v), 2, Dir::Out) != std::vector{member(v, 0)}) return "lost vertex";
            if (reader.neighbours(member(v, 0), 2, Dir::In) != std::vector{iri(v)}) return "lost object";
        }
        const auto label = static_cast<Label>(3 + random() % 58);
        const auto labelled = reader.neighbours(iri(Injector::kLabelled), label, Dir::Out);
        if (!labelled.empty() && labelled != std::vector{member(Injector::kLabelled, 0)}) return "torn directory";
        const auto stream = static_cast<std::uint32_t>(1 + random() % 100);
        const std::int64_t vts = reader.vts(stream);
        if (vts != kNever && static_cast<std::uint64_t>(vts) % 100 != stream - 1)
            return "torn VTS " + std::to_string(vts);
    }
    std::printf("%zu rounds verified, longest list %zu, %zu vertices, snapshot %u\n", reads, lengths[0], all, latest);
    return {};
}

/// The other process: follows the region from epoch to epoch.
int reader_process(const std::string& path) {
    const auto end = Clock::now() + test_time();
    std::string wrong;
    while (wrong.empty() && Clock::now() < end) {
        std::unique_ptr<ShardReader> reader;
        try {
            reader = std::make_unique<ShardReader>(path);
        } catch (const StorageError&) {
            continue;  // between two incarnations
        }
        try {
            wrong = read_and_verify(*reader, end);
        } catch (const std::exception& error) {
            wrong = error.what();
        }
    }
    if (!wrong.empty()) std::printf("%s\n", wrong.c_str());
    std::fflush(stdout);
    return wrong.empty() ? 0 : 1;
}

TEST(StoreReader, AnotherProcessNeverSeesTornData) {
    constexpr std::uint64_t kEdgesOfAnEpoch = 4'000'000;
    Fixture fixture;
    const pid_t child = fork();
    if (child == 0) _exit(reader_process(fixture.scratch / "regions/shard-0.region"));
    ASSERT_GT(child, 0);
    int status = 0;
    std::uint64_t commits = 0, edges = 0;
    for (pid_t ended = 0; ended == 0;) {
        Injector injector(fixture);
        while (fixture.store->edge_count() < kEdgesOfAnEpoch && (ended = waitpid(child, &status, WNOHANG)) == 0)
            injector.step();
        commits += fixture.store->latest();
        edges += fixture.store->edge_count();
        fixture.store.reset();
        fixture.store = std::make_unique<Store>(fixture.scratch / "regions", 1, kReserve);
    }
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_GT(commits, 100u);
    std::printf("%llu commits, %llu edges\n", static_cast<unsigned long long>(commits),
                static_cast<unsigned long long>(edges));
}

TEST(StoreReader, RefusesWhatIsNoRegion) {
    ScratchDirectory scratch;
    EXPECT_THROW(ShardReader(scratch / "missing"), StorageError);
    std::fclose(std::fopen((scratch / "empty").c_str(), "w"));
    EXPECT_THROW(ShardReader(scratch / "empty"), StorageError);
}

TEST(StoreReader, SeesThatTheWriterReleased) {
    auto fixture = std::make_unique<Fixture>();
    fixture->add({{iri(1), fixture->label(0), iri(2)}});
    const ShardReader reader(fixture->scratch / "regions/shard-0.region");
    EXPECT_FALSE(reader.retired());
    fixture.reset();
    EXPECT_TRUE(reader.retired());
    EXPECT_EQ(reader.neighbours(iri(1), 1, Dir::Out), std::vector{iri(2)});
}

}  // namespace
}  // namespace penstock::test
