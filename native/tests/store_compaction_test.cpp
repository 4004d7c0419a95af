// Readers in another process and in other threads, while lists are changed, emptied and rewritten at full speed.
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

constexpr std::uint64_t kHubs = 4, kGroup = 8, kGroups = 4096, kBits = 30;
constexpr std::uint64_t kStable[kHubs] = {0, 3, 100, 3000};
constexpr std::uint64_t kLeaves = 1024, kFirstLeaf = 1000;
constexpr Label kHub = 1, kLeaf = 2;

// The list of a hub states the commit that it is of, twice: by a group of values that each commit replaces, and by the
// bits of its number, which leave and return. Other values stay for ever.
TermId group_value(std::uint64_t hub, std::uint64_t commit, std::uint64_t i) {
    return make_id(Tag::Integer, hub << 32 | 1u << 24 | commit % kGroups * kGroup | i);
}
TermId bit_value(std::uint64_t hub, std::uint64_t bit) { return make_id(Tag::Integer, hub << 32 | 2u << 24 | bit); }
TermId stable_value(std::uint64_t hub, std::uint64_t i) { return make_id(Tag::Integer, hub << 32 | 3u << 24 | i); }

std::vector<TermId> hub_list(std::uint64_t hub, std::uint64_t commit) {
    std::vector<TermId> values;
    for (std::uint64_t i = 0; i < kGroup; ++i) values.push_back(group_value(hub, commit, i));
    for (std::uint64_t bit = 0; bit < kBits; ++bit)
        if ((commit >> bit & 1) != 0) values.push_back(bit_value(hub, bit));
    for (std::uint64_t i = 0; i < kStable[hub]; ++i) values.push_back(stable_value(hub, i));
    return sorted(std::move(values));
}

/// The commit that a list states; 0 if it is not the list of any commit.
std::uint64_t commit_of(std::uint64_t hub, std::vector<TermId> values) {
    std::uint64_t commit = 0;
    for (std::uint64_t bit = 0; bit < kBits; ++bit)
        if (std::find(values.begin(), values.end(), bit_value(hub, bit)) != values.end())
            commit |= std::uint64_t{1} << bit;
    return commit > 0 && sorted(std::move(values)) == hub_list(hub, commit) ? commit : 0;
}

// After each commit, a range of the leaves has an edge: two leave the range, and two others enter it.
std::uint64_t first_leaf(std::uint64_t commit) { return 2 * commit; }
std::uint64_t end_leaf(std::uint64_t commit) { return 2 * commit + 50 + commit / 64 % 100; }
TermId leaf(std::uint64_t n) { return iri(kFirstLeaf + n % kLeaves); }
TermId leaf_value(std::uint64_t n) { return make_id(Tag::Integer, std::uint64_t{9} << 32 | n % kLeaves); }

std::vector<TermId> leaves(std::uint64_t commit) {
    std::vector<TermId> all;
    for (std::uint64_t n = first_leaf(commit); n < end_leaf(commit); ++n) all.push_back(leaf(n));
    return sorted(std::move(all));
}

class Writer {
public:
    explicit Writer(Fixture& fixture) : fixture_(fixture) {
        fixture.label(0), fixture.label(1);
        std::vector<Edge> added;
        for (std::uint64_t hub = 0; hub < kHubs; ++hub)
            for (const TermId value : hub_list(hub, 1)) added.push_back({iri(hub), kHub, value});
        for (std::uint64_t n = first_leaf(1); n < end_leaf(1); ++n) added.push_back({leaf(n), kLeaf, leaf_value(n)});
        fixture.add(added);
    }
    void step() {
        const std::uint64_t before = fixture_.store->latest(), now = before + 1;
        std::vector<Edge> removed, added;
        for (std::uint64_t hub = 0; hub < kHubs; ++hub) {
            for (std::uint64_t i = 0; i < kGroup; ++i) {
                removed.push_back({iri(hub), kHub, group_value(hub, before, i)});
                added.push_back({iri(hub), kHub, group_value(hub, now, i)});
            }
            for (std::uint64_t bit = 0; bit < kBits; ++bit)
                if (((before ^ now) >> bit & 1) != 0)
                    ((now >> bit & 1) != 0 ? added : removed).push_back({iri(hub), kHub, bit_value(hub, bit)});
        }
        for (std::uint64_t n = first_leaf(before); n < first_leaf(now); ++n)
            removed.push_back({leaf(n), kLeaf, leaf_value(n)});
        for (std::uint64_t n = end_leaf(now); n < end_leaf(before); ++n)
            removed.push_back({leaf(n), kLeaf, leaf_value(n)});
        for (std::uint64_t n = end_leaf(before); n < end_leaf(now); ++n)
            added.push_back({leaf(n), kLeaf, leaf_value(n)});
        ASSERT_EQ(fixture_.store->change(removed, added, {}).snapshot, now);
    }

private:
    Fixture& fixture_;
};

/// Whether the vertices are a range of leaves, modulo their number.
bool is_range(const std::vector<TermId>& found) {
    if (found.size() < 50 || found.size() >= kLeaves / 2) return false;
    std::vector<std::uint8_t> here(kLeaves);
    for (const TermId vertex : found) {
        const std::uint64_t n = payload_of(vertex) - payload_of(iri(kFirstLeaf));
        if (n >= kLeaves || here[n]++ != 0) return false;
    }
    std::size_t begins = 0;
    for (std::uint64_t n = 0; n < kLeaves; ++n) begins += here[n] != 0 && here[(n + kLeaves - 1) % kLeaves] == 0;
    return begins == 1;
}

std::string read_and_verify(const ShardReader& reader, Clock::time_point end) {
    std::mt19937_64 random(11);
    std::uint64_t seen[kHubs] = {}, reads = 0;
    for (; Clock::now() < end; ++reads) {
        const std::uint64_t hub = reads % kHubs;
        const Snapshot at_least = reader.latest();
        const std::uint64_t commit = commit_of(hub, reader.neighbours(iri(hub), kHub, Dir::Out));
        if (commit == 0) return "torn list of hub " + std::to_string(hub);
        if (commit < seen[hub] || commit < at_least) return "resurrected values of hub " + std::to_string(hub);
        seen[hub] = commit;
        if (kStable[hub] > 0) {
            const TermId value = stable_value(hub, random() % kStable[hub]);
            if (reader.neighbours(value, kHub, Dir::In) != std::vector{iri(hub)}) return "lost value";
        }
        if (reads % 4 == 0 && !is_range(reader.vertices(kLeaf, Dir::Out))) return "torn list of vertices";
        const std::uint64_t n = random() % kLeaves;
        const auto values = reader.neighbours(leaf(n), kLeaf, Dir::Out);
        if (!values.empty() && values != std::vector{leaf_value(n)}) return "torn list of a leaf";
    }
    std::printf("%lu rounds verified, up to commit %lu\n", reads, seen[0]);
    return {};
}

/// Whether the store publishes its append logs. Then commits rewrite lists; otherwise this happens between them.
class StoreCompaction : public testing::TestWithParam<bool> {};

TEST_P(StoreCompaction, ReadersInAnotherProcessSeeEachListAsOfOneCommit) {
    Fixture fixture(1, kReserve, GetParam());
    Writer writer(fixture);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::string wrong;
        try {
            const ShardReader reader(fixture.scratch / "regions/shard-0.region");
            wrong = read_and_verify(reader, Clock::now() + test_time());
        } catch (const std::exception& error) {
            wrong = error.what();
        }
        if (!wrong.empty()) std::printf("%s\n", wrong.c_str());
        std::fflush(stdout);
        _exit(wrong.empty() ? 0 : 1);
    }
    std::uint64_t early = 0;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        for (int i = 0; i < 16; ++i) writer.step();
        // Commits do not free the records of values (ADR 105), and all values recur after kGroups commits.
        if (early == 0 && fixture.store->latest() > (GetParam() ? kGroups : 2000)) early = fixture.store->used_bytes();
    }
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    std::printf("%u commits, %lu bytes used\n", fixture.store->latest(), fixture.store->used_bytes());
    if (early > 0) {
        EXPECT_LT(fixture.store->used_bytes(), 2 * early);
    }
}

void check_view(const Source& view, std::uint64_t& latest) {
    std::vector<TermId> values = neighbours(view, iri(0), kHub, Dir::Out);
    const std::uint64_t commit = commit_of(0, values);
    ASSERT_GE(commit, latest);
    ASSERT_GT(commit, 0u);
    latest = commit;
    for (int round = 0; round < 2; ++round) {
        for (std::uint64_t hub = 0; hub < kHubs; ++hub) {
            const auto expected = hub_list(hub, commit);
            ASSERT_EQ(neighbours(view, iri(hub), kHub, Dir::Out), expected);
            ASSERT_EQ(view.degree(iri(hub), kHub, Dir::Out), expected.size());
            ASSERT_FALSE(has(view, iri(hub), kHub, group_value(hub, commit + 1, 0)));
            ASSERT_FALSE(has(view, iri(hub), kHub, group_value(hub, commit + kGroups - 1, 0)));
            for (std::uint64_t bit = 0; bit < 4; ++bit)
                ASSERT_EQ(has(view, iri(hub), kHub, bit_value(hub, bit)), (commit >> bit & 1) != 0);
        }
        ASSERT_EQ(vertices(view, kLeaf, Dir::Out), leaves(commit));
        ASSERT_EQ(vertices(view, kLeaf, Dir::In).size(), leaves(commit).size());
        ASSERT_TRUE(labels_of(view, leaf(first_leaf(commit) - 1), Dir::Out).empty());
        ASSERT_EQ(labels_of(view, leaf(first_leaf(commit)), Dir::Out), std::vector{kLeaf});
        if (round == 0) std::this_thread::yield();
    }
}

TEST_P(StoreCompaction, ThreadsKeepTheirSnapshots) {
    Fixture fixture(1, kReserve, GetParam());
    Writer writer(fixture);
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> views{0};
    const auto read = [&](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        std::uint64_t latest = 0, again = 0;
        while (!stop && !testing::Test::HasFatalFailure()) {
            const auto view = fixture.store->view();
            check_view(*view, latest);
            if (random() % 16 == 0) {  // a lease that many commits pass by
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                again = latest;
                check_view(*view, again);
            }
            ++views;
            if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // without a lease
        }
    };
    std::thread first(read, 1), second(read, 2);
    const auto end = Clock::now() + test_time();
    while (Clock::now() < end && !HasFatalFailure()) writer.step();
    stop = true;
    first.join();
    second.join();
    EXPECT_GT(views, 0u);
    std::printf("%zu views, %u commits, %lu bytes used\n", views.load(), fixture.store->latest(),
                fixture.store->used_bytes());
}

INSTANTIATE_TEST_SUITE_P(Logs, StoreCompaction, testing::Bool());

}  // namespace
}  // namespace penstock::test
