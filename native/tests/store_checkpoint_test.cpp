// Saving a store and opening it again, and what happens when the saved files are not what they were.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "errors.hpp"
#include "store/shard_reader.hpp"
#include "store_world.hpp"

namespace penstock::test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Store> reopen(World& world, const std::string& saved) {
    world.store.reset();
    return Store::open(saved, world.scratch / "again", kReserve);
}

void fill(World& world, Model& model, int commits, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::int64_t batch = static_cast<std::int64_t>(seed) * 1000;
    for (int i = 0; i < commits; ++i) {
        std::vector<Edge> edges;
        for (int n = 0; n < 30; ++n)
            edges.push_back({iri(random() % 40), world.label(random() % 3), iri(random() % 40)});
        const CommitSource source{static_cast<std::uint32_t>(random() % 3), ++batch};
        model.add(world.store->commit(edges, source), edges, source);
    }
}

struct Everything {
    std::vector<TermId> vertices;
    std::vector<Label> labels{1, 2, 3};
    Everything() {
        for (std::uint64_t i = 0; i < 40; ++i) vertices.push_back(iri(i));
    }
};

TEST(StoreCheckpoint, BringsBackEverySnapshotThatABoundMayAskFor) {
    const Everything all;
    for (const std::size_t shards : {1, 3}) {
        World world(shards);
        Model model;
        for (int predicate = 0; predicate < 3; ++predicate) world.label(static_cast<std::uint64_t>(predicate));
        fill(world, model, 30, 1);
        world.store->release(1, 1010);
        world.store->set_vts(5, 77);
        {
            const auto held = world.store->view();  // a reader changes nothing
            world.store->save(world.scratch / "saved");
        }
        const Snapshot latest = world.store->latest();
        const auto log_bytes = world.store->log_bytes();
        EXPECT_GT(log_bytes, 0u);

        auto store = Store::open(world.scratch / "saved", world.scratch / "again", kReserve);
        EXPECT_EQ(store->latest(), latest);
        EXPECT_EQ(store->labels().size(), 3u);
        EXPECT_EQ(store->labels().find(0, iri(2)), 3u);
        EXPECT_EQ(store->shard_count(), shards);
        EXPECT_EQ(ShardReader(world.scratch / "again/shard-0.region").vts(5), 77);
        for (std::int64_t batch = 1010; batch <= 1030; batch += 3) {
            const std::vector<StreamBound> bounds{{1, batch}, {2, batch - 5}};
            EXPECT_EQ(difference(*store->view(bounds), model.visible(latest, bounds), all.vertices, all.labels), "");
        }
        // And it goes on.
        std::swap(world.store, store);
        fill(world, model, 10, 2);
        EXPECT_EQ(difference(*world.store->view(), model.visible(world.store->latest(), {}), all.vertices, all.labels),
                  "");
        const StreamBound released[] = {{1, 1009}};
        EXPECT_THROW(world.store->view(released), Error);
    }
}

TEST(StoreCheckpoint, SavesAnEmptyStore) {
    World world;
    world.store->save(world.scratch / "saved");
    const auto store = reopen(world, world.scratch / "saved");
    EXPECT_EQ(store->latest(), 0u);
    const Edge edge{iri(1), store->labels().intern(0, iri(0)), iri(2)};
    EXPECT_EQ(store->commit({&edge, 1}, {}), 1u);
}

TEST(StoreCheckpoint, UsesFreedMemoryAgainAfterOpening) {
    World world;
    const Label l = world.label(0);
    {
        const auto view = world.store->view();
        std::vector<Edge> edges;
        for (std::uint64_t i = 0; i < 50000; ++i) {
            edges.push_back({iri(i), l, iri(i + 1)});
            if (edges.size() == 100) world.add(std::exchange(edges, {}));
        }
        world.store->save(world.scratch / "saved");  // old tables wait for the view
    }
    const auto used = world.store->used_bytes();
    const auto store = reopen(world, world.scratch / "saved");
    EXPECT_LT(store->used_bytes(), used);
}

TEST(StoreCheckpoint, ReplacesAnEarlierSaveWhole) {
    World world;
    const Label l = world.label(0);
    for (std::uint64_t i = 0; i < 3; ++i) {
        world.add({{iri(i), l, iri(9)}});
        world.store->save(world.scratch / "saved");
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(world.scratch / "saved"), {}), 2);  // manifest, one region
    EXPECT_EQ(reopen(world, world.scratch / "saved")->edge_count(), 3u);
}

TEST(StoreCheckpoint, RefusesFilesThatAreMissingCutOrChanged) {
    World world(2);
    Model model;
    world.label(0), world.label(1), world.label(2);
    fill(world, model, 20, 1);
    world.store->save(world.scratch / "saved");
    const auto open = [&] { return Store::open(world.scratch / "damaged", world.scratch / "again", kReserve); };
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(world.scratch / "saved")) names.push_back(file.path().filename());
    ASSERT_EQ(names.size(), 3u);
    for (const std::string& name : names) {
        const auto size = fs::file_size(world.scratch / "saved/" + name);
        for (int damage = 0; damage < 8; ++damage) {
            fs::remove_all(world.scratch / "damaged");
            fs::copy(world.scratch / "saved", world.scratch / "damaged");
            const std::string path = world.scratch / "damaged/" + name;
            if (damage == 0) {
                fs::remove(path);
            } else if (damage == 1) {
                fs::resize_file(path, size / 2);
            } else if (damage == 2) {
                fs::resize_file(path, 0);
            } else if (damage == 3) {
                fs::resize_file(path, size + 8);
            } else {
                std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
                const auto at = static_cast<std::streamoff>(damage == 4 ? 0 : size / 8 * static_cast<unsigned>(damage));
                file.seekg(std::min(at, static_cast<std::streamoff>(size - 1)));
                const int byte = file.peek();
                file.seekp(std::min(at, static_cast<std::streamoff>(size - 1)));
                file.put(static_cast<char>(byte ^ 0x10));
            }
            EXPECT_THROW(open(), StorageError) << name << ", damage " << damage;
        }
    }
    fs::remove_all(world.scratch / "damaged");
    EXPECT_THROW(open(), StorageError);
    fs::copy(world.scratch / "saved", world.scratch / "damaged");
    EXPECT_EQ(open()->latest(), world.store->latest());
}

// ---- only what has changed

std::uint64_t bytes_of(const std::string& directory) {
    std::uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(directory)) bytes += file.file_size();
    return bytes;
}

TEST(StoreCheckpoint, WritesOnlyWhatHasChanged) {
    World world(2);
    const Label l = world.label(0);
    std::vector<Edge> edges;
    for (std::uint64_t i = 0; i < 100'000; ++i) edges.push_back({iri(i), l, iri(i + 1)});
    world.add(std::move(edges));
    world.store->capture(world.scratch / "0", "")->write();
    world.add({{iri(1), l, iri(7)}});
    const auto second = world.store->capture(world.scratch / "1", world.scratch / "0");
    EXPECT_GT(second->changed_bytes(), 0u);
    EXPECT_LT(second->changed_bytes(), std::uint64_t{64} << 10);
    second->write();
    EXPECT_LT(bytes_of(world.scratch / "1"), bytes_of(world.scratch / "0") + (std::uint64_t{128} << 10));
    fs::remove_all(world.scratch / "0");  // what it linked stays
    EXPECT_EQ(reopen(world, world.scratch / "1")->edge_count(), 100'001u);
}

TEST(StoreCheckpoint, AChainOfSavesAlwaysGivesTheLastOneAndStaysShort) {
    Model model;
    World world(3);
    const Everything all;
    for (int predicate = 0; predicate < 3; ++predicate) world.label(static_cast<std::uint64_t>(predicate));
    std::string before;
    for (std::uint64_t round = 0; round < 60; ++round) {
        fill(world, model, 1 + static_cast<int>(round % 5), round + 1);
        const std::string here = world.scratch / ("saved-" + std::to_string(round));
        world.store->capture(here, before)->write();
        if (!before.empty()) fs::remove_all(before);
        before = here;
        EXPECT_LE(std::distance(fs::directory_iterator(here), {}), 1 + 3 * 17);
        if (round % 7 == 0) {  // and a store that was opened goes on with the chain
            const Snapshot latest = world.store->latest();
            world.store.reset();
            world.store = Store::open(here, world.scratch / "regions", kReserve);
            EXPECT_EQ(world.store->latest(), latest);
            EXPECT_EQ(difference(*world.store->view(), model.visible(latest, {}), all.vertices, all.labels), "");
            EXPECT_LT(world.store->capture(world.scratch / "unwritten", here)->changed_bytes(),
                      world.store->used_bytes() / 2);
        }
    }
}

TEST(StoreCheckpoint, IsOfTheMomentOfItsCapture) {
    Model model;
    World world;
    const Everything all;
    for (int predicate = 0; predicate < 3; ++predicate) world.label(static_cast<std::uint64_t>(predicate));
    fill(world, model, 20, 1);
    world.store->save(world.scratch / "saved");
    fill(world, model, 5, 2);
    const Snapshot then = world.store->latest();
    const auto capture = world.store->capture(world.scratch / "saved", world.scratch / "saved");
    EXPECT_THROW(world.store->capture(world.scratch / "other", ""), DataError);
    Model later = model;
    fill(world, later, 20, 3);
    capture->write();
    EXPECT_THROW(capture->write(), DataError);
    const auto opened = Store::open(world.scratch / "saved", world.scratch / "again", kReserve);
    EXPECT_EQ(opened->latest(), then);
    EXPECT_EQ(difference(*opened->view(), model.visible(then, {}), all.vertices, all.labels), "");
}

TEST(StoreCheckpoint, AfterACaptureThatWasNotWrittenTheNextOneHasAllOfIt) {
    World world;
    const Label l = world.label(0);
    world.add({{iri(1), l, iri(2)}});
    world.store->save(world.scratch / "saved");
    world.add({{iri(3), l, iri(4)}});
    world.store->capture(world.scratch / "1", world.scratch / "saved").reset();
    const auto failing = world.store->capture(world.scratch / "2", world.scratch / "saved");
    fs::remove_all(world.scratch / "2");
    EXPECT_THROW(failing->write(), StorageError);
    world.add({{iri(5), l, iri(6)}});
    world.store->capture(world.scratch / "3", world.scratch / "saved")->write();
    EXPECT_EQ(Store::open(world.scratch / "saved", "", kReserve)->edge_count(), 1u);
    EXPECT_EQ(reopen(world, world.scratch / "3")->edge_count(), 3u);
}

TEST(StoreCheckpoint, DoesNotContinueWhatAnotherStoreSaved) {
    World world, other;
    const Label l = world.label(0);
    other.add({{iri(8), other.label(0), iri(9)}});
    other.store->save(world.scratch / "saved");
    world.add({{iri(1), l, iri(2)}});
    world.store->save(world.scratch / "mine");
    world.store->capture(world.scratch / "next", world.scratch / "saved")->write();
    EXPECT_EQ(has(*reopen(world, world.scratch / "next")->view(), iri(1), l, iri(2)), true);
}

TEST(StoreCheckpoint, RefusesAChainOfWhichAnyFileIsMissingCutOrChanged) {
    World world;
    Model model;
    world.label(0), world.label(1), world.label(2);
    std::vector<Edge> edges;
    for (std::uint64_t i = 0; i < 20'000; ++i) edges.push_back({iri(100 + i), 1, iri(i)});
    world.add(std::move(edges));  // so much that what follows is not merged with it
    std::string before;
    for (std::uint64_t round = 0; round < 4; ++round) {
        fill(world, model, 3, round + 1);
        world.store->capture(world.scratch / "saved", before)->write();
        before = world.scratch / "saved";
    }
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(before)) names.push_back(file.path().filename());
    ASSERT_GE(names.size(), 3u);  // the manifest and a chain
    for (const std::string& name : names)
        for (int damage = 0; damage < 12; ++damage) {
            const std::string copy = world.scratch / "damaged", path = copy + "/" + name;
            fs::remove_all(copy);
            fs::copy(before, copy);
            const auto size = fs::file_size(path);
            if (damage == 0) {
                fs::remove(path);
            } else if (damage < 4) {
                fs::resize_file(path, damage == 1 ? size / 2 : damage == 2 ? size - 1 : size + 16);
            } else {
                std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
                const auto at = static_cast<std::streamoff>((size - 1) / 7 * static_cast<unsigned>(damage - 4));
                file.seekg(at);
                const int byte = file.peek();
                file.seekp(at);
                file.put(static_cast<char>(byte ^ 0x10));
            }
            EXPECT_THROW(Store::open(copy, "", kReserve), StorageError) << name << ", damage " << damage;
        }
    EXPECT_EQ(Store::open(before, "", kReserve)->latest(), world.store->latest());
}

TEST(StoreCheckpoint, SaysSoWhereItCannotWrite) {
    World world;
    std::ofstream(world.scratch / "file") << "x";
    EXPECT_THROW(world.store->save(world.scratch / "file"), StorageError);
}

TEST(StoreCheckpoint, AStoreInMemoryIsSavedAndOpenedInMemory) {
    const ScratchDirectory scratch;
    std::vector<Edge> edges;
    {
        Store store("", 2, kReserve);
        const Label label = store.labels().intern(0, iri(0));
        for (std::uint64_t i = 0; i < 200'000; ++i) edges.push_back({iri(1 + i % 50'000), label, iri(100'000 + i)});
        store.commit(edges, {});
        EXPECT_GT(store.used_bytes(), std::size_t{6} << 20);  // several large pages a shard
        store.save(scratch / "saved");
    }
    const auto opened = Store::open(scratch / "saved", "", kReserve);
    EXPECT_EQ(opened->edge_count(), edges.size());
    const auto view = opened->view();
    EXPECT_EQ(neighbours(*view, iri(1), edges[0].label, Dir::Out).size(), 4u);
    EXPECT_EQ(opened->commit({{edges[0]}}, {}), opened->latest());  // known already
}

}  // namespace
}  // namespace penstock::test
