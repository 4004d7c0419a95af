// Regions of a store read through the local data plane.
#include <gtest/gtest.h>

#include <cstring>

#include "dataplane/local_plane.hpp"
#include "dataplane/router.hpp"
#include "store/layout.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

using dataplane::Fault;
using dataplane::LocalPlane;
using dataplane::Read;
using dataplane::RegionEntry;
using dataplane::RegionKind;

RegionEntry entry_of(const std::string& path, std::uint32_t number) {
    const dataplane::MappedRegion region(path, kReserve);
    layout::Header header{};
    std::memcpy(&header, region.data(), sizeof header);
    RegionEntry entry;
    entry.id = {0, number};
    entry.kind = RegionKind::Shard;
    entry.epoch = header.epoch;
    entry.reserve_bytes = header.reserve_bytes;
    entry.device = region.device();
    entry.inode = region.inode();
    entry.path = path;
    return entry;
}

Fault fault_of(dataplane::Plane& plane, const Read& read) {
    try {
        plane.read({&read, 1});
    } catch (const dataplane::Error& error) {
        return error.fault;
    }
    return Fault{};
}

struct LocalPlaneTest : ::testing::Test {
    Fixture fixture;
    std::string path = fixture.scratch / "regions/shard-0.region";
    RegionEntry entry = entry_of(path, 7);
    LocalPlane plane;
    layout::Header header{};

    Read header_read() { return {entry.id, 0, sizeof(layout::Header) / 8 * 8, reinterpret_cast<std::byte*>(&header)}; }
};

TEST_F(LocalPlaneTest, ReadsWhatTheWriterPublishes) {
    plane.attach(entry);
    const Read read = header_read();
    plane.read({&read, 1});
    EXPECT_EQ(header.magic, layout::kMagic);
    EXPECT_EQ(header.published, 0u);
    fixture.add({{iri(1), fixture.label(0), iri(2)}});
    plane.read({&read, 1});
    EXPECT_EQ(header.published, fixture.store->latest());
    EXPECT_EQ(header.edges, 1u);
}

TEST_F(LocalPlaneTest, FollowsAFileThatGrows) {
    plane.attach(entry);
    const std::uint64_t before = plane.directory(0).at(0).bytes;
    std::vector<Edge> edges;
    for (std::uint64_t i = 0; i < 100'000; ++i) edges.push_back({iri(i), fixture.label(i % 3), iri(i + 1)});
    fixture.add(edges);
    std::uint64_t word = 0;
    const Read read{entry.id, before, 8, reinterpret_cast<std::byte*>(&word)};
    plane.read({&read, 1});
    EXPECT_GT(plane.directory(0).at(0).bytes, before);
}

TEST_F(LocalPlaneTest, RefusesWhatLiesOutside) {
    plane.attach(entry);
    Read read = header_read();
    read.offset = kReserve;
    EXPECT_EQ(fault_of(plane, read), Fault::OutOfRange);
    read.offset = ~std::uint64_t{7};
    EXPECT_EQ(fault_of(plane, read), Fault::OutOfRange);
    read.offset = 4;
    EXPECT_EQ(fault_of(plane, read), Fault::OutOfRange);
    read.offset = 0;
    read.length = 0;
    EXPECT_EQ(fault_of(plane, read), Fault::OutOfRange);
    read.region.number = 8;
    read.length = 8;
    EXPECT_EQ(fault_of(plane, read), Fault::Retired);
}

TEST_F(LocalPlaneTest, AnotherIncarnationIsAnotherRegion) {
    fixture.store.reset();
    fixture.store = std::make_unique<Store>(fixture.scratch / "regions", 1, kReserve);
    try {
        plane.attach(entry);
        FAIL() << "attached a file of another epoch";
    } catch (const dataplane::Error& error) {
        EXPECT_EQ(error.fault, Fault::Retired);
    }
    plane.attach(entry_of(path, 8));
    EXPECT_EQ(plane.directory(0).size(), 1u);
}

TEST(Router, ReadsFromSeveralNodesInOneBatch) {
    dataplane::Router router;
    std::vector<Fixture> fixtures(2);
    std::vector<layout::Header> headers(2);
    std::vector<Read> reads;
    for (dataplane::Node node = 0; node < 2; ++node) {
        for (std::uint64_t n = 0; n <= node; ++n) fixtures[node].add({{iri(n), fixtures[node].label(0), iri(n + 1)}});
        RegionEntry entry = entry_of(fixtures[node].scratch / "regions/shard-0.region", 3);
        entry.id.node = node;
        auto plane = std::make_shared<LocalPlane>();
        plane->attach(entry);
        router.add(node, plane);
        reads.push_back({entry.id, 0, sizeof(layout::Header) / 8 * 8, reinterpret_cast<std::byte*>(&headers[node])});
    }
    router.read(reads);
    EXPECT_EQ(headers[0].edges, 1u);
    EXPECT_EQ(headers[1].edges, 2u);
    EXPECT_EQ(router.transport(1), LocalPlane().transport(1));
}

TEST(Router, HasNoPlaneToOtherNodes) {
    dataplane::Router router;
    router.add(0, std::make_shared<LocalPlane>());
    router.remove(0);
    std::uint64_t word = 0;
    EXPECT_EQ(fault_of(router, {{0, 0}, 0, 8, reinterpret_cast<std::byte*>(&word)}), Fault::Disconnected);
}

}  // namespace
}  // namespace penstock::test
