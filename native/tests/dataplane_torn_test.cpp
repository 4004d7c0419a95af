// An engine reads lists of another process's store through each data plane, while that store is written at full speed.
// Every list shows by itself whether it is whole: value k of vertex v is member(v, k).
// PENSTOCK_TORN_READS: how many lists are verified (200,000; a million with PENSTOCK_LONG). PENSTOCK_RDMA_DEVICES: the
// devices of node and engine, such as rxe0,rxe1.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <random>
#include <string>

#include "dataplane/rdma.hpp"
#include "dataplane/shared_plane.hpp"
#include "dataplane/tcp_server.hpp"
#include "store/lookup.hpp"
#include "store_fixture.hpp"
#include "torn_reads.hpp"

namespace penstock::test {
namespace {

using dataplane::Fault;
using dataplane::Plane;
using dataplane::Read;
using dataplane::RegionEntry;
using dataplane::RegionId;
using layout::Offset;

constexpr std::uint64_t kVertices = 2000;           // with lists that grow
constexpr std::uint64_t kEdgesOfAnEpoch = 200'000;  // then the store is made anew: memory is bounded, time is not
constexpr std::size_t kBatch = 512;

TermId member(std::uint64_t vertex, std::uint64_t index) { return make_id(Tag::Integer, (vertex << 28) | index); }

std::size_t lists_to_verify() {
    const char* limit = std::getenv("PENSTOCK_TORN_READS");
    if (limit != nullptr) return std::strtoull(limit, nullptr, 10);
    return std::getenv("PENSTOCK_LONG") != nullptr ? 1'000'000 : 200'000;
}

// ---- the node

/// Appends to the lists, and brings ever new vertices, so that table and file grow as well.
class Injector {
public:
    Injector() { start(); }
    void step() {
        std::vector<Edge> edges;
        for (int i = 0; i < 60; ++i) append(edges, random_() % kVertices, 1 + random_() % 6);
        for (int i = 0; i < 60; ++i, ++leaves_) edges.push_back({iri(leaves_), 2, member(leaves_, 0)});
        fixture_->store->commit(edges, {});
        if (fixture_->store->edge_count() > kEdgesOfAnEpoch) start();
        ++steps;
    }
    std::string path() const { return fixture_->scratch / "regions/shard-0.region"; }
    std::uint64_t epochs = 0, steps = 0;

private:
    void append(std::vector<Edge>& edges, std::uint64_t vertex, std::uint64_t count) {
        for (; count > 0; --count) edges.push_back({iri(vertex), 1, member(vertex, lengths_[vertex]++)});
    }
    void start() {
        fixture_ = std::make_unique<Fixture>();
        fixture_->label(0);
        fixture_->label(1);
        lengths_.assign(kVertices, 0);
        leaves_ = kVertices;
        std::vector<Edge> edges;
        for (std::uint64_t v = 0; v < kVertices; ++v) append(edges, v, 1);
        fixture_->store->commit(edges, {});
        ++epochs;
    }

    std::unique_ptr<Fixture> fixture_;
    std::mt19937_64 random_{5};
    std::vector<std::uint64_t> lengths_;
    std::uint64_t leaves_ = 0;
};

/// The other process: injects until its standard input ends.
int node_process(int tell, int stop) {
    dataplane::ServedRegions regions(open_host());
    dataplane::TcpServer server(regions, {"127.0.0.1", 0}, secret());
    Injector injector;
    std::uint64_t epochs = 0;
    std::uint32_t number = 0;
    pollfd poll{stop, POLLIN, 0};
    while (::poll(&poll, 1, 0) == 0) {
        if (epochs != injector.epochs) {
            if (epochs > 0) regions.withdraw(number);
            RegionEntry entry;
            entry.path = injector.path();
            entry.kind = dataplane::RegionKind::Shard;
            const dataplane::MappedRegion region(entry.path, kReserve);
            entry.epoch = reinterpret_cast<const layout::Header*>(region.data())->epoch;
            entry.reserve_bytes = kReserve;
            entry.stable = true;
            number = regions.publish(entry);
            const std::uint16_t port = server.port();
            if (epochs == 0 && ::write(tell, &port, sizeof port) != sizeof port) return 1;
            epochs = injector.epochs;
        }
        injector.step();
    }
    std::printf("node: %llu commits, %llu epochs, %llu reads served over TCP\n",
                static_cast<unsigned long long>(injector.steps), static_cast<unsigned long long>(epochs),
                static_cast<unsigned long long>(server.counters().reads));
    std::fflush(stdout);
    return 0;
}

class NodeProcess {
public:
    explicit NodeProcess(int (*process)(int, int) = node_process) {
        int tell[2], stop[2];
        if (::pipe(tell) != 0 || ::pipe(stop) != 0) std::abort();
        child_ = ::fork();
        if (child_ == 0) {
            ::close(stop[1]);
            ::_exit(process(tell[1], stop[0]));
        }
        ::close(tell[1]);
        ::close(stop[0]);
        stop_ = stop[1];
        if (::read(tell[0], &port, sizeof port) != sizeof port) port = 0;
        ::close(tell[0]);
    }
    ~NodeProcess() {
        ::close(stop_);
        int status = 0;
        ::waitpid(child_, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    std::uint16_t port = 0;

private:
    pid_t child_;
    int stop_;
};

// ---- the engine

struct ReadAgain {};

/// For the walks of store/lookup.hpp: each access is a read of its own.
class PlaneMemory {
public:
    PlaneMemory(Plane& plane, RegionId region) : plane_(plane), region_(region) {}
    template <class T>
    const T& at(Offset offset, std::uint64_t bytes = sizeof(T)) const {
        if (offset % 8 != 0 || offset > kReserve || bytes > (std::uint64_t{1} << 20)) throw ReadAgain{};
        auto& words = held_.emplace_back((bytes + 7) / 8);
        const Read read{region_, offset, static_cast<std::uint32_t>(8 * words.size()),
                        reinterpret_cast<std::byte*>(words.data())};
        plane_.read({&read, 1});
        return *reinterpret_cast<const T*>(words.data());
    }

private:
    Plane& plane_;
    RegionId region_;
    mutable std::deque<std::vector<std::uint64_t>> held_;
};

struct List {
    std::uint64_t vertex;
    layout::Entry entry;
    std::vector<TermId> values;
    Offset next;  // extent to be read
};

/// Verifies lists of one incarnation of the shard.
class Reader {
public:
    Reader(Plane& plane, std::uint64_t seed) : plane_(plane), random_(seed) {}

    /// Finds out where the lists are: entries never move.
    void locate() {
        const std::vector<RegionEntry> regions = plane_.directory(0);
        if (regions.empty()) throw ReadAgain{};
        region_ = regions.back().id;
        const PlaneMemory memory(plane_, region_);
        const auto seed = memory.at<layout::Header>(0).seed;
        entries_.clear();
        for (std::uint64_t v = 0; v < kVertices; v += 1 + kVertices / kLocated) {
            const Offset bucket = lookup::current_bucket(memory, layout::record_hash(seed, iri(v), Dir::Out));
            const Offset record = lookup::find_record(memory, bucket, iri(v), Dir::Out);
            const Offset entry = record == 0 ? 0 : lookup::find_entry(memory, record, iri(v), 1, Dir::Out);
            if (entry != 0) entries_.push_back({v, entry});
        }
        if (entries_.empty()) throw ReadAgain{};
    }

    /// One batch of entries, then the extents of all that have some, level by level. Returns what is torn.
    std::string verify() {
        std::vector<List> lists(kBatch);
        std::vector<Read> reads;
        for (List& list : lists) {
            const auto& [vertex, offset] = entries_[random_() % entries_.size()];
            list.vertex = vertex;
            reads.push_back({region_, offset, sizeof list.entry, reinterpret_cast<std::byte*>(&list.entry)});
        }
        plane_.read(reads);
        layout::Header header{};
        const Read now{region_, 0, sizeof header / 8 * 8, reinterpret_cast<std::byte*>(&header)};
        plane_.read({&now, 1});  // after the entries: a commit in the middle of its publication is above `published`
        if (header.status != static_cast<std::uint64_t>(layout::RegionStatus::Live)) throw ReadAgain{};
        std::erase_if(lists, [&](const List& list) { return is_unfinished(list, header.published); });
        read_values(lists);
        for (const List& list : lists) {
            const std::string wrong = difference(list);
            if (!wrong.empty()) return wrong;
        }
        verified += lists.size();
        return {};
    }

    std::size_t verified = 0, values = 0;

private:
    static constexpr std::uint64_t kLocated = 200;
    struct Place {
        std::uint64_t vertex;
        Offset entry;
    };

    static bool is_unfinished(const List& list, std::uint64_t published) {
        const std::uint32_t length = layout::length_of(list.entry.state);
        return layout::last_of(list.entry.state) > published || length == 0 ||
               (length > 1 && !layout::is_extent(list.entry.head));
    }

    void read_values(std::vector<List>& lists) {
        std::vector<List*> open;
        for (List& list : lists) {
            list.next = layout::is_extent(list.entry.head) ? payload_of(list.entry.head) : 0;
            if (list.next == 0)
                list.values = {list.entry.head};
            else
                open.push_back(&list);
        }
        while (!open.empty()) {
            std::vector<layout::ListExtent> extents(open.size());
            std::vector<Read> reads;
            for (std::size_t i = 0; i < open.size(); ++i)
                reads.push_back(
                    {region_, open[i]->next, sizeof(layout::ListExtent), reinterpret_cast<std::byte*>(&extents[i])});
            plane_.read(reads);
            reads.clear();
            for (std::size_t i = 0; i < open.size(); ++i) {
                List& list = *open[i];
                const std::size_t have = list.values.size();
                const std::size_t n = std::min<std::size_t>(extents[i].capacity, length(list) - have);
                list.values.resize(have + n);
                reads.push_back({region_, list.next + sizeof(layout::ListExtent), static_cast<std::uint32_t>(8 * n),
                                 reinterpret_cast<std::byte*>(list.values.data() + have)});
                list.next = extents[i].next;
            }
            plane_.read(reads);
            std::erase_if(open, [&](const List* list) { return list->values.size() == length(*list); });
        }
    }

    static std::uint32_t length(const List& list) { return layout::length_of(list.entry.state); }

    std::string difference(const List& list) {
        values += list.values.size();
        for (std::size_t i = 0; i < list.values.size(); ++i)
            if (list.values[i] != member(list.vertex, i))
                return "torn list of vertex " + std::to_string(list.vertex) + " at " + std::to_string(i) + " of " +
                       std::to_string(list.values.size());
        return {};
    }

    Plane& plane_;
    RegionId region_;
    std::vector<Place> entries_;
    std::mt19937_64 random_;
};

void expect_no_torn_lists(Plane& plane) {
    Reader reader(plane, 3);
    const std::size_t limit = lists_to_verify();
    std::size_t times_located = 0;
    for (bool located = false; reader.verified < limit;) {
        try {
            if (!located) {
                reader.locate();
                located = true;
                ++times_located;
            }
            const std::string torn = reader.verify();
            ASSERT_EQ(torn, "") << "after " << reader.verified << " lists";
        } catch (const ReadAgain&) {
            located = false;
        } catch (const dataplane::Error& error) {
            ASSERT_EQ(error.fault, Fault::Retired) << error.what();
            located = false;
        }
    }
    std::printf("%s: %zu lists, %zu values verified, located %zu times\n", std::string(plane.transport(0)).c_str(),
                reader.verified, reader.values, times_located);
}

dataplane::TcpOptions options() {
    dataplane::TcpOptions options;
    options.secret = secret();
    options.read_timeout = std::chrono::milliseconds(60000);
    options.connect_timeout = std::chrono::milliseconds(20000);
    return options;
}

// ---- words

/// A page whose words change between two values that differ in every byte.
class PageOfWords {
public:
    static constexpr std::size_t kWords = 512;
    static constexpr std::uint64_t kOne = 0x1122334455667788, kOther = ~kOne;

    PageOfWords() : path_(scratch_ / "words.region"), words_(kWords, kOne) {
        std::ofstream(path_, std::ios::binary)
            .write(reinterpret_cast<const char*>(words_.data()), static_cast<std::streamsize>(8 * kWords));
        const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
        page_ = static_cast<std::uint64_t*>(::mmap(nullptr, 8 * kWords, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        ::close(file);
    }
    ~PageOfWords() { ::munmap(page_, 8 * kWords); }
    PageOfWords(const PageOfWords&) = delete;
    PageOfWords& operator=(const PageOfWords&) = delete;

    void step() {
        for (std::size_t i = 0; i < kWords; ++i) layout::store_release(page_[i], ~page_[i]);
    }
    std::string path() const { return path_; }

private:
    ScratchDirectory scratch_;
    std::string path_;
    std::vector<std::uint64_t> words_;
    std::uint64_t* page_ = nullptr;
};

/// Changes the words until its standard input ends.
int words_process(int tell, int stop) {
    dataplane::ServedRegions regions(open_host());
    dataplane::TcpServer server(regions, {"127.0.0.1", 0}, secret());
    PageOfWords page;
    RegionEntry entry;
    entry.path = page.path();
    entry.stable = true;
    regions.publish(entry);
    const std::uint16_t port = server.port();
    if (::write(tell, &port, sizeof port) != sizeof port) return 1;
    for (pollfd poll{stop, POLLIN, 0}; ::poll(&poll, 1, 0) == 0;)
        for (int i = 0; i < 64; ++i) page.step();
    return 0;
}

/// The rules of the shards' layout require that each 8-byte word is read whole (plane.hpp).
void expect_no_torn_words(Plane& plane) {
    constexpr std::size_t kReads = 64;
    const RegionId region = plane.directory(0).at(0).id;
    std::vector<std::uint64_t> words(kReads * PageOfWords::kWords);
    std::size_t changes = 0;
    for (std::size_t done = 0; done < lists_to_verify(); done += kReads) {
        std::vector<Read> reads;
        for (std::size_t i = 0; i < kReads; ++i)
            reads.push_back({region, 0, 8 * PageOfWords::kWords,
                             reinterpret_cast<std::byte*>(words.data() + i * PageOfWords::kWords)});
        plane.read(reads);
        std::size_t torn = 0;
        for (const std::uint64_t word : words) torn += word != PageOfWords::kOne && word != PageOfWords::kOther;
        ASSERT_EQ(torn, 0U) << "of " << words.size() << " words, after " << done << " reads";
        for (std::size_t i = 1; i < words.size(); ++i) changes += words[i] != words[i - 1];
    }
    EXPECT_GT(changes, 0U) << "the page did not change while it was read";
}

TEST(Torn, NoWordOverTcp) {
    const NodeProcess node(words_process);
    dataplane::TcpPlane plane(0, {"127.0.0.1", node.port}, options());
    expect_no_torn_words(plane);
}

TEST(Torn, NoWordOverRdma) {
    if (dataplane::rdma_devices().empty())
        GTEST_SKIP() << "no RDMA device here; make test-rdma runs this in a virtual machine that has two";
    const NodeProcess node(words_process);
    const auto plane = dataplane::make_rdma_plane(
        std::make_unique<dataplane::TcpPlane>(0, dataplane::Address{"127.0.0.1", node.port}, options()),
        rdma_device(false));
    expect_no_torn_words(*plane);
    EXPECT_EQ(plane->remark(0), "");
}

TEST(Torn, NoListInSharedMemory) {
    const NodeProcess node;
    dataplane::SharedPlane plane(0, {"127.0.0.1", node.port}, options());
    expect_no_torn_lists(plane);
}

TEST(Torn, NoListOverTcp) {
    const NodeProcess node;
    dataplane::TcpPlane plane(0, {"127.0.0.1", node.port}, options());
    expect_no_torn_lists(plane);
}

TEST(Torn, NoListOverRdma) {
    if (dataplane::rdma_devices().empty())
        GTEST_SKIP() << "no RDMA device here; make test-rdma runs this in a virtual machine that has two";
    const NodeProcess node;
    const auto plane = dataplane::make_rdma_plane(
        std::make_unique<dataplane::TcpPlane>(0, dataplane::Address{"127.0.0.1", node.port}, options()),
        rdma_device(false));
    expect_no_torn_lists(*plane);
    EXPECT_EQ(plane->remark(0), "");
}

}  // namespace
}  // namespace penstock::test
