// The TCP data plane between threads of one process: answers, faults, limits, and hostile bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <random>

#include "dataplane/channel.hpp"
#include "dataplane/tcp_plane.hpp"
#include "dataplane/tcp_server.hpp"
#include "dataplane_counted.hpp"
#include "errors.hpp"
#include "mix.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

using namespace dataplane;  // NOLINT(google-build-using-namespace)

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

/// Word i of a file is a function of i and of the file's seed.
std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) { return mix(seed * 0x10001 + index); }

struct TcpTest : ::testing::Test {
    std::string write(const std::string& name, std::uint64_t seed, std::uint64_t words) const {
        const std::string path = scratch / name;
        std::ofstream file(path, std::ios::binary | std::ios::app);
        for (std::uint64_t i = 0; i < words; ++i) {
            const std::uint64_t word = word_at(seed, i);
            file.write(reinterpret_cast<const char*>(&word), sizeof word);
        }
        return path;
    }
    std::uint32_t publish(const std::string& path) {
        RegionEntry entry;
        entry.path = path;
        entry.reserve_bytes = std::uint64_t{1} << 30;
        return regions.publish(entry);
    }
    void start(ServerLimits limits = {}, std::uint16_t port = 0) {
        server.emplace(regions, Address{"127.0.0.1", port}, secret, limits);
    }
    TcpOptions options() const {
        TcpOptions options;
        options.secret = secret;
        options.read_timeout = std::chrono::milliseconds(20000);
        options.retry_pause = std::chrono::milliseconds(0);
        return options;
    }
    std::unique_ptr<TcpPlane> plane() {
        return std::make_unique<TcpPlane>(3, Address{"127.0.0.1", server->port()}, options());
    }

    ScratchDirectory scratch;
    ServedRegions regions;
    std::vector<std::byte> secret = bytes_of("sixteen bytes or more");
    std::optional<TcpServer> server;
};

template <class Call>
Fault fault_of(Call call) {
    try {
        call();
    } catch (const dataplane::Error& error) {
        return error.fault;
    }
    return Fault{};
}

/// Random reads of both files, their buffers, and whether each has what it should.
struct Reads {
    Reads(std::size_t count, std::uint32_t most_words, std::uint64_t words, std::uint32_t regions, std::uint32_t seed) {
        std::mt19937_64 random(seed);
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t length = 1 + random() % most_words;
            buffers.emplace_back(length);
            reads.push_back({{3, static_cast<std::uint32_t>(random() % regions)},
                             8 * (random() % (words - length + 1)),
                             static_cast<std::uint32_t>(8 * length),
                             nullptr});
        }
        for (std::size_t i = 0; i < count; ++i) reads[i].into = reinterpret_cast<std::byte*>(buffers[i].data());
    }
    bool right() const {
        for (std::size_t i = 0; i < reads.size(); ++i)
            for (std::size_t k = 0; k < buffers[i].size(); ++k)
                if (buffers[i][k] != word_at(reads[i].region.number, reads[i].offset / 8 + k)) return false;
        return true;
    }
    std::vector<std::vector<std::uint64_t>> buffers;
    std::vector<Read> reads;
};

constexpr std::uint64_t kWords = 200'000;

struct TwoRegions : TcpTest {
    TwoRegions() {
        publish(write("a", 0, kWords));
        publish(write("b", 1, kWords));
        start();
    }
};

TEST_F(TwoRegions, AreReadInBatchesOfAllSizes) {
    const auto plane = this->plane();
    EXPECT_EQ(plane->directory(3).size(), 2u);
    for (const std::uint32_t most_words : {1u, 16u, 1000u, 100'000u}) {
        Reads reads(most_words > 1000 ? 100 : 10'000, most_words, kWords, 2, most_words);
        plane->read(reads.reads);
        EXPECT_TRUE(reads.right()) << most_words;
    }
    EXPECT_EQ(counted(*server, 30'100), 30'100u);
}

TEST_F(TwoRegions, ManyBatchesAreOnTheirWayAtOnce) {
    const auto plane = this->plane();
    plane->directory(3);
    std::vector<Reads> batches;
    for (std::uint32_t i = 0; i < 200; ++i) batches.emplace_back(i % 50, 3000, kWords, 2, i);
    std::vector<Plane::Ticket> tickets;
    for (Reads& batch : batches) tickets.push_back(plane->post(batch.reads));
    for (std::size_t i = batches.size(); i-- > 0;) plane->wait(tickets[i]);
    for (const Reads& batch : batches) EXPECT_TRUE(batch.right());
}

TEST_F(TwoRegions, ARegionThatWasWithdrawnIsRetiredAndTheConnectionGoesOn) {
    const auto plane = this->plane();
    plane->directory(3);
    Reads both(1000, 100, kWords, 2, 1), first(1000, 100, kWords, 1, 2);
    regions.withdraw(1);
    const auto failing = plane->post(both.reads), working = plane->post(first.reads);
    EXPECT_EQ(fault_of([&] { plane->wait(failing); }), Fault::Retired);
    both.buffers.clear();  // the plane may not touch them any more
    plane->wait(working);
    EXPECT_TRUE(first.right());
    EXPECT_EQ(plane->directory(3).size(), 1u);
    EXPECT_EQ(fault_of([&] { plane->read(std::span(both.reads)); }), Fault::Retired);
    EXPECT_EQ(server->counters().connections, 1u);
}

TEST_F(TwoRegions, AReadBeyondTheEndIsFoundOutBeforeItIsSent) {
    const auto plane = this->plane();
    plane->directory(3);
    std::uint64_t word = 0;
    const Read beyond{{3, 0}, 8 * kWords, 8, reinterpret_cast<std::byte*>(&word)};
    EXPECT_EQ(fault_of([&] { plane->read({&beyond, 1}); }), Fault::OutOfRange);
    write("a", 0, 1);  // appends: now it is there
    plane->read({&beyond, 1});
    EXPECT_EQ(word, word_at(0, 0));
    EXPECT_EQ(server->counters().connections, 1u);
}

TEST_F(TwoRegions, AnotherSecretIsRefused) {
    secret.back() ^= std::byte{1};
    const auto plane = this->plane();
    EXPECT_EQ(fault_of([&] { plane->directory(3); }), Fault::Refused);
    EXPECT_EQ(server->counters().reads, 0u);
}

TEST_F(TwoRegions, ANodeThatComesBackIsConnectedToAgain) {
    const auto plane = this->plane();
    plane->directory(3);
    const std::uint16_t port = server->port();
    Reads reads(100, 100, kWords, 2, 1);
    server.reset();
    EXPECT_EQ(fault_of([&] { plane->read(reads.reads); }), Fault::Disconnected);
    EXPECT_EQ(fault_of([&] { plane->read(reads.reads); }), Fault::Disconnected);
    start({}, port);
    EXPECT_EQ(fault_of([&] { plane->read(reads.reads); }), Fault::Retired);  // numbers of its former life
    plane->directory(3);
    plane->read(reads.reads);
    EXPECT_TRUE(reads.right());
}

/// Somebody who writes what he likes, after a right handshake or without one.
class RawEngine {
public:
    RawEngine(std::uint16_t port, const std::vector<std::byte>& secret, bool authenticate)
        : channel_(connect_to({"127.0.0.1", port}, deadline())) {
        if (!authenticate) return;
        send(wire::frame(wire::Message::Hello, wire::Greeting{wire::kMagic, wire::kVersion, 0, {}}));
        const auto challenge = wire::value_at<wire::Greeting>(answer().second);
        send(wire::frame(wire::Message::Proof, wire::proof(secret, wire::Side::Engine, {}, challenge.nonce)));
        EXPECT_EQ(answer().first, wire::Message::Welcome);
    }
    void send(std::span<const std::byte> bytes) const { channel_.send_all(bytes, deadline()); }
    void read(std::uint32_t number, std::uint64_t offset, std::uint32_t length) const {
        struct One {
            std::uint64_t count;
            wire::ReadItem item;
        };
        send(wire::frame(wire::Message::Read, One{1, {offset, number, length}}));
    }
    std::pair<wire::Message, std::vector<std::byte>> answer() const {
        wire::FrameHeader header{};
        channel_.receive_all(std::as_writable_bytes(std::span(&header, 1)), deadline());
        std::vector<std::byte> body(header.body_bytes);
        channel_.receive_all(body, deadline());
        return {header.message, body};
    }
    /// The fault of the next answer; then the node must have disconnected.
    Fault cut() const {
        const auto [message, body] = answer();
        EXPECT_EQ(message, wire::Message::Failure);
        std::byte byte;
        EXPECT_EQ(fault_of([&] { channel_.receive_all({&byte, 1}, deadline()); }), Fault::Disconnected);
        return wire::read_failure(body).fault;
    }

private:
    static Clock::time_point deadline() { return Clock::now() + std::chrono::seconds(20); }
    mutable Channel channel_;
};

TEST_F(TwoRegions, GarbageGetsAnErrorAndADisconnect) {
    std::mt19937_64 random(9);
    for (const bool authenticated : {false, true}) {
        for (int i = 0; i < 20; ++i) {
            std::vector<std::byte> garbage(8 + random() % 5000);
            for (std::byte& b : garbage) b = static_cast<std::byte>(random());
            const RawEngine engine(server->port(), secret, authenticated);
            engine.send(garbage);
            EXPECT_EQ(engine.cut(), Fault::Refused);
        }
    }
}

TEST_F(TwoRegions, AReadBeyondARegionGetsAnErrorAndADisconnect) {
    const auto fault = [&](std::uint32_t number, std::uint64_t offset, std::uint32_t length) {
        const RawEngine engine(server->port(), secret, true);
        engine.read(number, offset, length);
        return engine.cut();
    };
    EXPECT_EQ(fault(0, 8 * kWords, 8), Fault::OutOfRange);
    EXPECT_EQ(fault(0, ~std::uint64_t{7}, 16), Fault::OutOfRange);
    EXPECT_EQ(fault(0, 0, 0x80000000u), Fault::OutOfRange);
    EXPECT_EQ(fault(0, 0, 0), Fault::OutOfRange);
    EXPECT_EQ(fault(0, 4, 8), Fault::OutOfRange);
    EXPECT_EQ(fault(2, 0, 8), Fault::Refused);
    EXPECT_EQ(server->counters().reads, 0u);
}

TEST_F(TwoRegions, NoReadSucceedsBeforeTheProof) {
    const RawEngine engine(server->port(), secret, false);
    engine.read(0, 0, 8);
    EXPECT_EQ(engine.cut(), Fault::Refused);
}

TEST_F(TwoRegions, ARecordedProofIsWorthNothing) {
    const RawEngine engine(server->port(), secret, false);
    engine.send(wire::frame(wire::Message::Hello, wire::Greeting{wire::kMagic, wire::kVersion, 0, {}}));
    engine.answer();
    engine.send(wire::frame(wire::Message::Proof, wire::proof(secret, wire::Side::Engine, {}, {})));
    EXPECT_EQ(engine.cut(), Fault::Refused);
}

TEST_F(TwoRegions, AClientThatReadsNoAnswersDelaysNoOther) {
    const RawEngine greedy(server->port(), secret, true);
    for (int i = 0; i < 500; ++i) greedy.read(0, 0, 8 * kWords);  // 800 MB, and not one byte is taken
    const auto plane = this->plane();
    plane->directory(3);
    Reads reads(1000, 1000, kWords, 2, 1);
    plane->read(reads.reads);
    EXPECT_TRUE(reads.right());
}

TEST_F(TcpTest, ConnectionsAreLimited) {
    start({.connections = 2});
    const auto first = plane(), second = plane(), third = plane();
    first->directory(3);
    second->directory(3);
    EXPECT_EQ(fault_of([&] { third->directory(3); }), Fault::Refused);
    EXPECT_EQ(server->counters().open, 2u);
}

TEST_F(TcpTest, WhoDoesNotGreetIsCut) {
    start({.handshake = std::chrono::milliseconds(100)});
    Channel idle(connect_to({"127.0.0.1", server->port()}, Clock::now() + std::chrono::seconds(5)));
    std::byte byte;
    EXPECT_EQ(fault_of([&] { idle.receive_all({&byte, 1}, Clock::now() + std::chrono::seconds(10)); }),
              Fault::Disconnected);
}

TEST_F(TcpTest, ANodeThatDoesNotAnswerIsTimedOut) {
    const Descriptor listening = listen_on({"127.0.0.1", 0});
    TcpOptions options = this->options();
    options.connect_timeout = std::chrono::milliseconds(50);
    TcpPlane plane(3, {"127.0.0.1", port_of(listening)}, options);
    EXPECT_EQ(fault_of([&] { plane.directory(3); }), Fault::TimedOut);
}

TEST_F(TcpTest, AShortSecretIsNone) {
    secret.resize(15);
    EXPECT_THROW(start(), DataError);
}

}  // namespace
}  // namespace penstock::test
