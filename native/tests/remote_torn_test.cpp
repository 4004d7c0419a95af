// Views over the store of another process, which is written at full speed meanwhile. What commit number s appended to
// which list follows from s, so the reader knows every list of every snapshot, value by value.
// With removals, each value is removed, restored and removed again by later commits, and the node rewrites its lists;
// these tests take two seconds each (a minute with PENSTOCK_LONG). PENSTOCK_TORN_READS: how many lists are verified
// (100,000; a million with PENSTOCK_LONG). PENSTOCK_RDMA_DEVICES: the devices of node and engine, such as rxe0,rxe1.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "dataplane/rdma.hpp"
#include "dataplane/shared_plane.hpp"
#include "dataplane/tcp_server.hpp"
#include "mix.hpp"
#include "remote/remote_view.hpp"
#include "remote_fixture.hpp"
#include "torn_reads.hpp"

namespace penstock::test {
namespace {

using dataplane::Plane;
using remote::RemoteStore;
using Clock = RemoteStore::Clock;

constexpr std::size_t kShards = 4;
constexpr std::uint64_t kVertices = 2000, kHot = 20;  // half of all values go to the hot ones: long lists
constexpr std::uint64_t kAppends = 60;                // of a commit; and as many new vertices
constexpr Snapshot kCommitsOfAnEpoch = 2000;          // then the store is made anew: memory is bounded, time is not
constexpr std::uint32_t kStream = 1;                  // has the even commits, as batches of the same number
constexpr Label kLists = 1, kLeaves = 2;
constexpr Snapshot kAge = 97;         // so many commits after the last change of a value is the next one; odd
constexpr Snapshot kChanges = 3;      // of a value, after it was added
constexpr std::int64_t kBehind = 50;  // so many batches at most is a view's bound behind

std::uint64_t vertex(Snapshot commit, std::uint64_t i) {
    const std::uint64_t random = mix(std::uint64_t{commit} * kAppends + i);
    return (random >> 8) % (random % 2 == 0 ? kVertices : kHot);
}
TermId member(std::uint64_t vertex, Snapshot commit) { return make_id(Tag::Integer, vertex << 32 | commit); }
CommitSource source(Snapshot commit) { return commit % 2 == 0 ? CommitSource{kStream, commit} : CommitSource{}; }

std::size_t lists_to_verify() {
    const char* limit = std::getenv("PENSTOCK_TORN_READS");
    if (limit != nullptr) return std::strtoull(limit, nullptr, 10);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 20'000;
#else
    return std::getenv("PENSTOCK_LONG") != nullptr ? 1'000'000 : 100'000;
#endif
}

std::chrono::seconds test_time() { return std::chrono::seconds(std::getenv("PENSTOCK_LONG") != nullptr ? 60 : 2); }

// ---- the node

struct LeaseRequest {
    std::uint64_t epoch;  // of shard 0
    Snapshot snapshot;
    std::int64_t released;  // no bound of the stream is below
};

class Writer {
public:
    Writer(dataplane::ServedRegions& regions, bool removes) : regions_(regions), removes_(removes) { start(); }

    void step() {
        if (store_->latest() == kCommitsOfAnEpoch) start();
        const Snapshot commit = store_->latest() + 1;
        std::vector<Edge> edges, removed;
        for (Snapshot change = 1; removes_ && change <= kChanges && commit > change * kAge; ++change) {
            const Snapshot of = commit - change * kAge;
            for (std::uint64_t i = 0; i < kAppends; ++i) {
                const std::uint64_t v = vertex(of, i);
                (change % 2 == 1 ? removed : edges).push_back({iri(v), kLists, member(v, of)});
            }
        }
        for (std::uint64_t i = 0; i < kAppends; ++i) {
            const std::uint64_t v = vertex(commit, i);
            edges.push_back({iri(v), kLists, member(v, commit)});
            edges.push_back({iri(kVertices + commit * kAppends + i), kLeaves, member(v, commit)});
        }
        store_->apply(commit, removed, edges, source(commit));
        ++commits;
    }
    /// 0 if the store was created again after the requested epoch.
    Snapshot lease(const LeaseRequest& asked) {
        if (asked.epoch != epoch_) return 0;
        store_->release(kStream, asked.released);
        std::unique_ptr<StoreLease> next;
        try {
            next = store_->lease(asked.snapshot);
        } catch (const StorageError&) {  // the first one: nothing was retained for it
            next = store_->lease(~Snapshot{0});
        }
        lease_ = std::move(next);
        return lease_->snapshot();
    }
    std::uint64_t commits = 0, epochs = 0;

private:
    void start() {
        lease_.reset();
        for (const std::uint32_t number : numbers_) regions_.withdraw(number);
        numbers_.clear();
        store_.reset();
        const StoreOptions options{.shards = kShards, .own = {}, .reserve_bytes = kReserve, .publish_logs = true};
        store_ = std::make_unique<Store>(scratch_ / "regions", options);
        for (std::uint32_t shard = 0; shard < kShards; ++shard) {
            auto entry = shard_entry(scratch_ / ("regions/shard-" + std::to_string(shard) + ".region"), 0, 0);
            entry.stable = true;
            if (shard == 0) epoch_ = entry.epoch;
            numbers_.push_back(regions_.publish(entry));
        }
        ++epochs;
        step();  // from here on a lease's snapshot is above 0
    }
    dataplane::ServedRegions& regions_;
    bool removes_;
    ScratchDirectory scratch_;
    std::unique_ptr<Store> store_;
    std::unique_ptr<StoreLease> lease_;
    std::vector<std::uint32_t> numbers_;
    std::uint64_t epoch_ = 0;
};

/// The other process: writes, and grants leases in between, until the connection ends.
int write_until_hung_up(int connection, bool removes) {
    dataplane::ServedRegions regions(open_host());
    Writer writer(regions, removes);
    dataplane::TcpServer server(regions, {"127.0.0.1", 0}, secret());
    const std::uint16_t port = server.port();
    if (::write(connection, &port, sizeof port) != sizeof port) return 1;
    for (pollfd poll{connection, POLLIN, 0};; writer.step()) {
        if (::poll(&poll, 1, 0) == 0) continue;
        LeaseRequest asked{};
        if (::read(connection, &asked, sizeof asked) != sizeof asked) break;
        const Snapshot granted = writer.lease(asked);
        if (::write(connection, &granted, sizeof granted) != sizeof granted) break;
    }
    std::printf("node: %llu commits in %llu epochs, %llu reads served over TCP\n",
                static_cast<unsigned long long>(writer.commits), static_cast<unsigned long long>(writer.epochs),
                static_cast<unsigned long long>(server.counters().reads));
    std::fflush(stdout);
    return 0;
}

class NodeProcess {
public:
    explicit NodeProcess(bool removes) : removes(removes) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
        child_ = ::fork();
        if (child_ == 0) {
            ::close(ends[0]);
            ::_exit(write_until_hung_up(ends[1], removes));
        }
        ::close(ends[1]);
        connection_ = ends[0];
        if (::read(connection_, &port, sizeof port) != sizeof port) port = 0;
    }
    ~NodeProcess() {
        ::close(connection_);
        int status = 0;
        ::waitpid(child_, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    Snapshot lease(const LeaseRequest& request) const {
        Snapshot granted = 0;
        if (::write(connection_, &request, sizeof request) != sizeof request ||
            ::read(connection_, &granted, sizeof granted) != sizeof granted)
            throw Error("the node has gone");
        return granted;
    }
    const bool removes;
    std::uint16_t port = 0;

private:
    pid_t child_;
    int connection_;
};

// ---- the engine

/// What all lists hold, from the commits' numbers alone.
class Expected {
public:
    explicit Expected(bool removes) : changes_(removes ? kChanges : 0) {}
    std::vector<TermId> list(std::uint64_t v, Snapshot snapshot, std::int64_t bound) {
        for (; known_ < snapshot; ++known_)
            for (std::uint64_t i = 0; i < kAppends; ++i) {
                auto& commits = commits_[vertex(known_ + 1, i)];
                if (commits.empty() || commits.back() != known_ + 1) commits.push_back(known_ + 1);
            }
        std::vector<TermId> values;
        for (const Snapshot commit : commits_[v])
            if (shows(commit, snapshot, bound)) values.push_back(member(v, commit));
        return values;
    }

private:
    /// Whether the last visible change of what the commit has added does not remove it.
    bool shows(Snapshot commit, Snapshot snapshot, std::int64_t bound) const {
        for (Snapshot change = changes_ + 1; change-- > 0;) {
            const Snapshot at = commit + change * kAge;
            if (at <= snapshot && (at % 2 == 1 || at <= bound)) return change % 2 == 0;
        }
        return false;
    }

    Snapshot changes_;
    std::vector<std::vector<Snapshot>> commits_{kVertices};
    Snapshot known_ = 0;
};

/// Reads one incarnation of the store.
class Reader {
public:
    Reader(const NodeProcess& node, const std::shared_ptr<Plane>& plane, Expected& expected, std::mt19937_64& random)
        : node_(node), store_(kShards), expected_(expected), random_(random) {
        for (const dataplane::RegionEntry& entry : plane->directory(0))
            if (entry.subject == 0) epoch_ = entry.epoch;
        store_.attach(0, plane);
        renew();
    }

    /// Lists through one view; returns what is wrong with them.
    std::string verify() {
        if (Clock::now() > renew_at_) renew();
        const auto latest = std::int64_t{store_.latest()};
        const bool bounded = random_() % 2 == 0;
        const std::int64_t bound = std::max(released_, latest - static_cast<std::int64_t>(random_() % kBehind));
        const StreamBound bounds[] = {{kStream, bound}};
        const auto view = store_.view(bounded ? std::span<const StreamBound>(bounds) : std::span<const StreamBound>());
        const Snapshot snapshot = dynamic_cast<const remote::RemoteView&>(*view).snapshot();
        for (int i = 0; i < 4; ++i) {
            const std::string wrong = compare(*view, snapshot, bounded ? bound : std::int64_t{snapshot});
            if (!wrong.empty()) return wrong;
        }
        return {};
    }
    std::size_t verified = 0, values = 0;

private:
    static constexpr std::size_t kBatch = 64;

    void renew() {
        released_ = std::max<std::int64_t>(released_, std::int64_t{store_.oldest_needed()} - 4 * kBehind);
        store_.release(kStream, released_);
        const auto began = Clock::now();
        const Snapshot granted = node_.lease({epoch_, store_.oldest_needed(), released_});
        if (granted == 0) throw dataplane::Error(dataplane::Fault::Retired, "the store was made anew");
        store_.lease(granted, began + std::chrono::minutes(1));
        renew_at_ = began + std::chrono::milliseconds(20);
    }

    std::string compare(const Source& view, Snapshot snapshot, std::int64_t bound) {
        std::vector<TermId> keys;
        std::vector<std::uint64_t> vertices;
        for (std::size_t i = 0; i < kBatch; ++i) {
            vertices.push_back(random_() % (i == 0 ? kHot : kVertices));
            keys.push_back(iri(vertices.back()));
        }
        Matches matches;
        view.expand(keys, kLists, Dir::Out, matches);
        std::vector<std::vector<TermId>> found(kBatch);
        for (std::size_t i = 0; i < matches.rows.size(); ++i) found[matches.rows[i]].push_back(matches.values[i]);
        if (node_.removes)  // rewritten lists are in another order
            for (auto& values : found) std::sort(values.begin(), values.end());
        for (std::size_t i = 0; i < kBatch; ++i)
            if (found[i] != expected_.list(vertices[i], snapshot, bound))
                return "vertex " + std::to_string(vertices[i]) + " at snapshot " + std::to_string(snapshot) +
                       ", bound " + std::to_string(bound) + ": " + std::to_string(found[i].size()) + " values";
        verified += kBatch;
        values += matches.values.size();
        return {};
    }

    const NodeProcess& node_;
    RemoteStore store_;
    Expected& expected_;
    std::mt19937_64& random_;
    std::uint64_t epoch_ = 0;
    std::int64_t released_ = 0;
    Clock::time_point renew_at_;
};

void expect_whole_lists(const NodeProcess& node, const std::shared_ptr<Plane>& plane) {
    std::mt19937_64 random(3);
    Expected expected(node.removes);
    const auto end = Clock::now() + (node.removes ? test_time() : std::chrono::hours(1));
    std::size_t verified = 0, values = 0, epochs = 0;
    const std::size_t limit = node.removes ? ~std::size_t{0} : lists_to_verify();
    for (; verified < limit && Clock::now() < end; ++epochs) {
        std::unique_ptr<Reader> reader;
        try {
            reader = std::make_unique<Reader>(node, plane, expected, random);
            while (verified + reader->verified < limit && Clock::now() < end) {
                const std::string wrong = reader->verify();
                ASSERT_EQ(wrong, "") << "after " << verified + reader->verified << " lists";
            }
        } catch (const dataplane::Error& error) {
            ASSERT_NE(error.fault, dataplane::Fault::OutOfRange) << error.what();
            ASSERT_NE(error.fault, dataplane::Fault::TimedOut) << error.what();
        }
        if (reader) {
            verified += reader->verified;
            values += reader->values;
        }
    }
    std::printf("%s: %zu lists, %zu values verified in %zu epochs\n", std::string(plane->transport(0)).c_str(),
                verified, values, epochs);
}

dataplane::TcpOptions options() {
    dataplane::TcpOptions options;
    options.secret = secret();
    options.read_timeout = std::chrono::milliseconds(60000);
    options.connect_timeout = std::chrono::milliseconds(20000);
    return options;
}

class RemoteTorn : public testing::TestWithParam<bool> {};  // whether commits remove edges

TEST_P(RemoteTorn, NoListInSharedMemory) {
    const NodeProcess node(GetParam());
    const dataplane::Address address{"127.0.0.1", node.port};
    expect_whole_lists(node, std::make_shared<dataplane::SharedPlane>(0, address, options()));
}

TEST_P(RemoteTorn, NoListOverTcp) {
    const NodeProcess node(GetParam());
    const dataplane::Address address{"127.0.0.1", node.port};
    expect_whole_lists(node, std::make_shared<dataplane::TcpPlane>(0, address, options()));
}

TEST_P(RemoteTorn, NoListOverRdma) {
    if (dataplane::rdma_devices().empty())
        GTEST_SKIP() << "no RDMA device here; make test-rdma runs this in a virtual machine that has two";
    const NodeProcess node(GetParam());
    const dataplane::Address address{"127.0.0.1", node.port};
    const std::shared_ptr<Plane> plane =
        dataplane::make_rdma_plane(std::make_unique<dataplane::TcpPlane>(0, address, options()), rdma_device(false));
    expect_whole_lists(node, plane);
    EXPECT_EQ(plane->remark(0), "");
}

INSTANTIATE_TEST_SUITE_P(Removals, RemoteTorn, testing::Bool());

}  // namespace
}  // namespace penstock::test
