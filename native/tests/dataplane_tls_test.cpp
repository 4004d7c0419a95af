// Data-plane reads over TLS between threads of one process: reads of all sizes, renewed keys, strangers, hostile bytes.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/tcp_plane.hpp"
#include "dataplane/tcp_server.hpp"
#include "dataplane_counted.hpp"
#include "errors.hpp"
#include "mix.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

using namespace dataplane;  // NOLINT(google-build-using-namespace)

// A certificate for 127.0.0.1 of a CA of its own, valid for a hundred years. The key protects nothing.
constexpr const char* kCa = R"(-----BEGIN CERTIFICATE-----
MIIBnTCCAUOgAwIBAgIUEFP0Uo8nh287qF40/lA7Lto0T80wCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQUGVuc3RvY2sgdGVzdCBDQTAgFw0yNjExMjUxMzU1MDhaGA8y
MTI2MTEwMTEzNTUwOFowGzEZMBcGA1UEAwwQUGVuc3RvY2sgdGVzdCBDQTBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABPsFZ2P4pAWvXpAspBMbstFlLVHqku5NITl6
O1Hy6cHO5hIJU+FY/Gfk8zREU3LBf5yS5WWEm5OtJGeZHOTjI3SjYzBhMB0GA1Ud
DgQWBBQPmrN5jCvZjU7CGbR4So49JyErXDAfBgNVHSMEGDAWgBQPmrN5jCvZjU7C
GbR4So49JyErXDAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwICBDAKBggq
hkjOPQQDAgNIADBFAiEAgx6qokuXUeFKtOGot27u75Z+z2M5JL6VhtzMXHIaUi4C
IDWsm1FShh88+tVyCyRBFtszcfDOOjiSK1Y8Tkk9ZWNy
-----END CERTIFICATE-----
)";
constexpr const char* kCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBqzCCAVGgAwIBAgIUJlLwyiukejL5Xwntmp1Ha2xHhJEwCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQUGVuc3RvY2sgdGVzdCBDQTAgFw0yNjExMjUxMzU1MDhaGA8y
MTI2MTEwMTEzNTUwOFowDzENMAsGA1UEAwwEbm9kZTBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABPzSPdnBxqL8QgQtBI6qExDjuzgdIUSVFDdvzISZxO24mL6DyA9t
U1WBOoCltlmuwOfMSYnktdZ9FHjMIwRLMpmjfTB7MBoGA1UdEQQTMBGHBH8AAAGC
CWxvY2FsaG9zdDAdBgNVHSUEFjAUBggrBgEFBQcDAQYIKwYBBQUHAwIwHQYDVR0O
BBYEFNXWtvbBPe6O4RvrwN2d0dimc9liMB8GA1UdIwQYMBaAFA+as3mMK9mNTsIZ
tHhKjj0nIStcMAoGCCqGSM49BAMCA0gAMEUCIB0x64NWbZsOfVf149IOutNHqrSH
Q5qKHnCvrummgo+jAiEAshdU/OZVlp8yAZuLSkanqym/YjWrriPuNBrIZZUrEZY=
-----END CERTIFICATE-----
)";
constexpr const char* kKey = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg3jnj87uy47yYH4Xc
wYEo6u9c+9OnJATkH5NjxDo3fCShRANCAAT80j3Zwcai/EIELQSOqhMQ47s4HSFE
lRQ3b8yEmcTtuJi+g8gPbVNVgTqApbZZrsDnzEmJ5LXWfRR4zCMESzKZ
-----END PRIVATE KEY-----
)";

constexpr std::uint64_t kWords = 400'000;

std::vector<std::byte> secret() {
    const auto bytes = std::as_bytes(std::span(std::string_view("sixteen bytes or more")));
    return {bytes.begin(), bytes.end()};
}

struct TlsTest : ::testing::Test {
    void SetUp() override {
        write("ca", kCa);
        write("crt", kCertificate);
        write("key", kKey);
        std::ofstream file(path("region"), std::ios::binary);
        for (std::uint64_t i = 0; i < kWords; ++i) {
            const std::uint64_t word = mix(i);
            file.write(reinterpret_cast<const char*>(&word), sizeof word);
        }
        file.close();
        RegionEntry entry;
        entry.path = path("region");
        entry.reserve_bytes = std::uint64_t{1} << 30;
        regions.publish(entry);
        try {
            node = identity();
        } catch (const dataplane::Error& error) {
            GTEST_SKIP() << error.what();
        }
        server = std::make_unique<TcpServer>(regions, Address{"0.0.0.0", 0}, secret(), ServerLimits{}, node);
    }
    std::string path(const std::string& name) const { return scratch / name; }
    void write(const std::string& name, const char* text) const { std::ofstream(path(name)) << text; }
    /// With keys that are renewed often.
    std::shared_ptr<TlsIdentity> identity() const {
        return std::make_shared<TlsIdentity>(TlsFiles{path("ca"), path("crt"), path("key")}, 5);
    }
    std::unique_ptr<TcpPlane> plane(std::shared_ptr<TlsIdentity> tls, const std::string& host = "127.0.0.1") const {
        TcpOptions options;
        options.secret = secret();
        options.tls = std::move(tls);
        options.read_timeout = std::chrono::milliseconds(20000);
        options.retry_pause = std::chrono::milliseconds(0);
        return std::make_unique<TcpPlane>(3, Address{host, server->port()}, options);
    }

    ScratchDirectory scratch;
    ServedRegions regions;
    std::shared_ptr<TlsIdentity> node;
    std::unique_ptr<TcpServer> server;
};

/// Reads ranges of random length, and checks every word.
void read_all(TcpPlane& plane, std::size_t count, std::uint64_t most_words) {
    std::mt19937_64 random(most_words);
    std::vector<std::vector<std::uint64_t>> buffers;
    std::vector<Read> reads;
    for (std::size_t i = 0; i < count; ++i) {
        buffers.emplace_back(1 + random() % most_words);
        const std::uint64_t length = buffers.back().size();
        reads.push_back({{3, 0},
                         8 * (random() % (kWords - length + 1)),
                         static_cast<std::uint32_t>(8 * length),
                         reinterpret_cast<std::byte*>(buffers.back().data())});
    }
    plane.read(reads);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t k = 0; k < buffers[i].size(); ++k) ASSERT_EQ(buffers[i][k], mix(reads[i].offset / 8 + k));
}

TEST_F(TlsTest, ReadsOfAllSizesAreCorrectWhileKeysAreRenewed) {
    const auto plane = this->plane(identity());
    plane->directory(3);
    read_all(*plane, 10'000, 1);
    read_all(*plane, 5'000, 40);
    read_all(*plane, 300, 5'000);
    read_all(*plane, 30, kWords);
    EXPECT_EQ(server->counters().connections, 1u);
    EXPECT_EQ(counted(*server, 15'330), 15'330u);
}

TEST_F(TlsTest, SeveralConnectionsAreServedAtOnce) {
    const auto tls = identity();
    std::vector<std::thread> engines;
    for (int i = 0; i < 4; ++i)
        engines.emplace_back([&] {
            const auto plane = this->plane(tls);
            plane->directory(3);
            for (int k = 0; k < 5; ++k) read_all(*plane, 200, 3'000);
        });
    for (std::thread& engine : engines) engine.join();
    EXPECT_EQ(counted(*server, 4'000), 4'000u);
}

TEST_F(TlsTest, AnEngineWithoutTlsGetsNothing) {
    EXPECT_THROW(plane(nullptr)->directory(3), dataplane::Error);
    EXPECT_EQ(server->counters().reads, 0u);
    read_all(
        *[&] {
            auto plane = this->plane(identity());
            plane->directory(3);
            return plane;
        }(),
        10, 10);
}

TEST_F(TlsTest, TheCertificateNamesTheHost) {
    plane(identity(), "localhost")->directory(3);
    try {
        plane(identity(), "127.0.0.2")->directory(3);
        FAIL() << "the certificate of another host is accepted";
    } catch (const dataplane::Error& error) {
        EXPECT_EQ(error.fault, Fault::Refused);
        EXPECT_NE(std::string(error.what()).find("certificate"), std::string::npos) << error.what();
    }
}

TEST_F(TlsTest, GarbageEndsOnlyItsConnection) {
    const auto plane = this->plane(identity());
    plane->directory(3);
    std::mt19937_64 random(1);
    for (std::size_t size : {1, 5, 6, 100, 20'000, 200'000}) {
        std::vector<std::byte> garbage(size);
        for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
        if (size % 2 == 0) garbage[0] = std::byte{0x16}, garbage[1] = std::byte{3}, garbage[2] = std::byte{1};
        const Descriptor socket = connect_to({"127.0.0.1", server->port()}, Clock::now() + std::chrono::seconds(5));
        std::size_t moved = 0;
        send_some(socket.get(), garbage, moved);
        read_all(*plane, 100, 100);
    }
    EXPECT_EQ(counted(*server, 600), 600u);
}

TEST_F(TlsTest, FilesThatCannotBeUsedAreNamed) {
    write("key", "no key");
    try {
        identity();
        FAIL() << "a file without a key is accepted";
    } catch (const StorageError& error) {
        EXPECT_NE(std::string(error.what()).find(path("key")), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace penstock::test
