// Saving a store and opening it again, and what happens when the saved files are not what they were.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "errors.hpp"
#include "rdf/hash.hpp"
#include "store/files.hpp"
#include "store/shard_reader.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Store> reopen(Fixture& fixture, const std::string& saved) {
    fixture.store.reset();
    return Store::open(saved, fixture.scratch / "again", kReserve);
}

void fill(Fixture& fixture, Model& model, int commits, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::int64_t batch = static_cast<std::int64_t>(seed) * 1000;
    for (int i = 0; i < commits; ++i) {
        std::vector<Edge> edges;
        for (int n = 0; n < 30; ++n)
            edges.push_back({iri(random() % 40), fixture.label(random() % 3), iri(random() % 40)});
        const CommitSource source{static_cast<std::uint32_t>(random() % 3), ++batch};
        model.add(fixture.store->commit(edges, source), edges, source);
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
        Fixture fixture(shards);
        Model model;
        for (int predicate = 0; predicate < 3; ++predicate) fixture.label(static_cast<std::uint64_t>(predicate));
        fill(fixture, model, 30, 1);
        fixture.store->release(1, 1010);
        fixture.store->set_vts(5, 77);
        {
            const auto held = fixture.store->view();  // a reader changes nothing
            fixture.store->save(fixture.scratch / "saved");
        }
        const Snapshot latest = fixture.store->latest();
        const auto log_bytes = fixture.store->log_bytes();
        EXPECT_GT(log_bytes, 0u);

        auto store = Store::open(fixture.scratch / "saved", fixture.scratch / "again", kReserve);
        EXPECT_EQ(store->latest(), latest);
        EXPECT_EQ(store->labels().size(), 3u);
        EXPECT_EQ(store->labels().find(0, iri(2)), 3u);
        EXPECT_EQ(store->shard_count(), shards);
        EXPECT_EQ(ShardReader(fixture.scratch / "again/shard-0.region").vts(5), 77);
        for (std::int64_t batch = 1010; batch <= 1030; batch += 3) {
            const std::vector<StreamBound> bounds{{1, batch}, {2, batch - 5}};
            EXPECT_EQ(difference(*store->view(bounds), model.visible(latest, bounds), all.vertices, all.labels), "");
        }
        // It continues.
        std::swap(fixture.store, store);
        fill(fixture, model, 10, 2);
        EXPECT_EQ(
            difference(*fixture.store->view(), model.visible(fixture.store->latest(), {}), all.vertices, all.labels),
            "");
        const StreamBound released[] = {{1, 1009}};
        EXPECT_THROW(fixture.store->view(released), Error);
    }
}

TEST(StoreCheckpoint, SavesAnEmptyStore) {
    Fixture fixture;
    fixture.store->save(fixture.scratch / "saved");
    const auto store = reopen(fixture, fixture.scratch / "saved");
    EXPECT_EQ(store->latest(), 0u);
    const Edge edge{iri(1), store->labels().intern(0, iri(0)), iri(2)};
    EXPECT_EQ(store->commit({&edge, 1}, {}), 1u);
}

TEST(StoreCheckpoint, UsesFreedMemoryAgainAfterOpening) {
    Fixture fixture;
    const Label l = fixture.label(0);
    {
        const auto view = fixture.store->view();
        std::vector<Edge> edges;
        for (std::uint64_t i = 0; i < 50000; ++i) {
            edges.push_back({iri(i), l, iri(i + 1)});
            if (edges.size() == 100) fixture.add(std::exchange(edges, {}));
        }
        fixture.store->save(fixture.scratch / "saved");  // old tables wait for the view
    }
    const auto used = fixture.store->used_bytes();
    const auto store = reopen(fixture, fixture.scratch / "saved");
    EXPECT_LT(store->used_bytes(), used);
}

std::uint64_t bytes_in(const std::string& directory) {
    std::uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(directory)) bytes += file.file_size();
    return bytes;
}

TEST(StoreCheckpoint, LeavesOutMemoryThatIsNotUsed) {
    Fixture fixture;
    const Label l = fixture.label(0);
    std::vector<Edge> edges, lasting;
    for (std::uint64_t i = 0; i < 50'000; ++i) edges.push_back({iri(i), l, iri(100'000 + i / 3)});
    for (std::uint64_t i = 0; i < 1000; ++i) lasting.push_back({iri(200'000 + i), l, iri(i % 7)});
    fixture.add(edges);
    fixture.add(lasting);
    fixture.store->capture(fixture.scratch / "full", "")->write();
    const std::uint64_t full = bytes_in(fixture.scratch / "full");
    fixture.store->change(edges, {}, {});
    for (std::uint64_t i = 0; i < 300; ++i) {  // commits rewrite lists
        const Edge again{iri(300'000), l, iri(i % 2)};
        const Edge before = std::exchange(lasting.back(), again);
        fixture.store->change({&before, 1}, {&again, 1}, {});
    }
    // The chain of changes is merged, because it is much longer than what is used.
    fixture.store->capture(fixture.scratch / "less", fixture.scratch / "full")->write();
    EXPECT_LT(4 * bytes_in(fixture.scratch / "less"), full);
    const auto check = [&](const Store& store) { EXPECT_EQ(store.edge_count(), fixture.store->edge_count()); };
    auto store = Store::open(fixture.scratch / "less", "", kReserve);
    check(*store);
    // Memory that was free is used again, and saved again.
    store->commit(edges, {});
    fixture.store->commit(edges, {});
    store->capture(fixture.scratch / "more", fixture.scratch / "less")->write();
    store = Store::open(fixture.scratch / "more", "", kReserve);
    check(*store);
    const auto view = store->view(), same = fixture.store->view();
    for (const TermId vertex : vertices(*same, l, Dir::Out))
        ASSERT_EQ(neighbours(*view, vertex, l, Dir::Out), neighbours(*same, vertex, l, Dir::Out));
    EXPECT_EQ(vertices(*view, l, Dir::In), vertices(*same, l, Dir::In));
}

TEST(StoreCheckpoint, ReplacesAnEarlierSaveWhole) {
    Fixture fixture;
    const Label l = fixture.label(0);
    for (std::uint64_t i = 0; i < 3; ++i) {
        fixture.add({{iri(i), l, iri(9)}});
        fixture.store->save(fixture.scratch / "saved");
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(fixture.scratch / "saved"), {}), 2);  // manifest, one region
    EXPECT_EQ(reopen(fixture, fixture.scratch / "saved")->edge_count(), 3u);
}

TEST(StoreCheckpoint, RefusesFilesThatAreMissingCutOrChanged) {
    Fixture fixture(2);
    Model model;
    fixture.label(0), fixture.label(1), fixture.label(2);
    fill(fixture, model, 20, 1);
    fixture.store->save(fixture.scratch / "saved");
    const auto open = [&] { return Store::open(fixture.scratch / "damaged", fixture.scratch / "again", kReserve); };
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(fixture.scratch / "saved")) names.push_back(file.path().filename());
    ASSERT_EQ(names.size(), 3u);
    for (const std::string& name : names) {
        const auto size = fs::file_size(fixture.scratch / "saved/" + name);
        for (int damage = 0; damage < 8; ++damage) {
            fs::remove_all(fixture.scratch / "damaged");
            fs::copy(fixture.scratch / "saved", fixture.scratch / "damaged");
            const std::string path = fixture.scratch / "damaged/" + name;
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
    fs::remove_all(fixture.scratch / "damaged");
    EXPECT_THROW(open(), StorageError);
    fs::copy(fixture.scratch / "saved", fixture.scratch / "damaged");
    EXPECT_EQ(open()->latest(), fixture.store->latest());
}

// ---- only what has changed

std::uint64_t bytes_of(const std::string& directory) {
    std::uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(directory)) bytes += file.file_size();
    return bytes;
}

TEST(StoreCheckpoint, WritesOnlyWhatHasChanged) {
    Fixture fixture(2);
    const Label l = fixture.label(0);
    std::vector<Edge> edges;
    for (std::uint64_t i = 0; i < 100'000; ++i) edges.push_back({iri(i), l, iri(i + 1)});
    fixture.add(std::move(edges));
    fixture.store->capture(fixture.scratch / "0", "")->write();
    fixture.add({{iri(1), l, iri(7)}});
    const auto second = fixture.store->capture(fixture.scratch / "1", fixture.scratch / "0");
    EXPECT_GT(second->changed_bytes(), 0u);
    EXPECT_LT(second->changed_bytes(), std::uint64_t{64} << 10);
    second->write();
    EXPECT_LT(bytes_of(fixture.scratch / "1"), bytes_of(fixture.scratch / "0") + (std::uint64_t{128} << 10));
    fs::remove_all(fixture.scratch / "0");  // what it linked stays
    EXPECT_EQ(reopen(fixture, fixture.scratch / "1")->edge_count(), 100'001u);
}

TEST(StoreCheckpoint, AChainOfSavesAlwaysGivesTheLastOneAndStaysShort) {
    Model model;
    Fixture fixture(3);
    const Everything all;
    for (int predicate = 0; predicate < 3; ++predicate) fixture.label(static_cast<std::uint64_t>(predicate));
    std::string before;
    for (std::uint64_t round = 0; round < 60; ++round) {
        fill(fixture, model, 1 + static_cast<int>(round % 5), round + 1);
        const std::string here = fixture.scratch / ("saved-" + std::to_string(round));
        fixture.store->capture(here, before)->write();
        if (!before.empty()) fs::remove_all(before);
        before = here;
        EXPECT_LE(std::distance(fs::directory_iterator(here), {}), 1 + 3 * 17);
        if (round % 7 == 0) {  // and an opened store continues the chain
            const Snapshot latest = fixture.store->latest();
            fixture.store.reset();
            fixture.store = Store::open(here, fixture.scratch / "regions", kReserve);
            EXPECT_EQ(fixture.store->latest(), latest);
            EXPECT_EQ(difference(*fixture.store->view(), model.visible(latest, {}), all.vertices, all.labels), "");
            EXPECT_LT(fixture.store->capture(fixture.scratch / "unwritten", here)->changed_bytes(),
                      fixture.store->used_bytes() / 2);
        }
    }
}

TEST(StoreCheckpoint, IsOfTheMomentOfItsCapture) {
    Model model;
    Fixture fixture;
    const Everything all;
    for (int predicate = 0; predicate < 3; ++predicate) fixture.label(static_cast<std::uint64_t>(predicate));
    fill(fixture, model, 20, 1);
    fixture.store->save(fixture.scratch / "saved");
    fill(fixture, model, 5, 2);
    const Snapshot then = fixture.store->latest();
    const auto capture = fixture.store->capture(fixture.scratch / "saved", fixture.scratch / "saved");
    EXPECT_THROW(fixture.store->capture(fixture.scratch / "other", ""), DataError);
    Model later = model;
    fill(fixture, later, 20, 3);
    capture->write();
    EXPECT_THROW(capture->write(), DataError);
    const auto opened = Store::open(fixture.scratch / "saved", fixture.scratch / "again", kReserve);
    EXPECT_EQ(opened->latest(), then);
    EXPECT_EQ(difference(*opened->view(), model.visible(then, {}), all.vertices, all.labels), "");
}

TEST(StoreCheckpoint, AfterACaptureThatWasNotWrittenTheNextOneHasAllOfIt) {
    Fixture fixture;
    const Label l = fixture.label(0);
    fixture.add({{iri(1), l, iri(2)}});
    fixture.store->save(fixture.scratch / "saved");
    fixture.add({{iri(3), l, iri(4)}});
    fixture.store->capture(fixture.scratch / "1", fixture.scratch / "saved").reset();
    const auto failing = fixture.store->capture(fixture.scratch / "2", fixture.scratch / "saved");
    fs::remove_all(fixture.scratch / "2");
    EXPECT_THROW(failing->write(), StorageError);
    fixture.add({{iri(5), l, iri(6)}});
    fixture.store->capture(fixture.scratch / "3", fixture.scratch / "saved")->write();
    EXPECT_EQ(Store::open(fixture.scratch / "saved", "", kReserve)->edge_count(), 1u);
    EXPECT_EQ(reopen(fixture, fixture.scratch / "3")->edge_count(), 3u);
}

TEST(StoreCheckpoint, DoesNotContinueWhatAnotherStoreSaved) {
    Fixture fixture, other;
    const Label l = fixture.label(0);
    other.add({{iri(8), other.label(0), iri(9)}});
    other.store->save(fixture.scratch / "saved");
    fixture.add({{iri(1), l, iri(2)}});
    fixture.store->save(fixture.scratch / "mine");
    fixture.store->capture(fixture.scratch / "next", fixture.scratch / "saved")->write();
    EXPECT_EQ(has(*reopen(fixture, fixture.scratch / "next")->view(), iri(1), l, iri(2)), true);
}

TEST(StoreCheckpoint, RefusesAChainOfWhichAnyFileIsMissingCutOrChanged) {
    Fixture fixture;
    Model model;
    fixture.label(0), fixture.label(1), fixture.label(2);
    std::vector<Edge> edges;
    for (std::uint64_t i = 0; i < 20'000; ++i) edges.push_back({iri(100 + i), 1, iri(i)});
    fixture.add(std::move(edges));  // so much that what follows is not merged with it
    std::string before;
    for (std::uint64_t round = 0; round < 4; ++round) {
        fill(fixture, model, 3, round + 1);
        fixture.store->capture(fixture.scratch / "saved", before)->write();
        before = fixture.scratch / "saved";
    }
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(before)) names.push_back(file.path().filename());
    ASSERT_GE(names.size(), 3u);  // the manifest and a chain
    for (const std::string& name : names)
        for (int damage = 0; damage < 12; ++damage) {
            const std::string copy = fixture.scratch / "damaged", path = copy + "/" + name;
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
    EXPECT_EQ(Store::open(before, "", kReserve)->latest(), fixture.store->latest());
}

TEST(StoreCheckpoint, RefusesWhatAnotherVersionSaved) {
    Fixture fixture;
    fixture.add({{iri(1), fixture.label(0), iri(2)}});
    fixture.store->save(fixture.scratch / "saved");
    std::string manifest = files::read(fixture.scratch / "saved/manifest");
    manifest[std::string_view("PENSTOCK-STORE-").size()] = '4';
    const std::uint64_t sum = hash_bytes(manifest.data(), manifest.size() - sizeof sum, 0);
    std::memcpy(manifest.data() + manifest.size() - sizeof sum, &sum, sizeof sum);
    files::write(fixture.scratch / "saved/manifest", manifest);
    EXPECT_THROW(Store::open(fixture.scratch / "saved", "", kReserve), StorageError);
    fixture.store->capture(fixture.scratch / "next", fixture.scratch / "saved")->write();
    EXPECT_EQ(Store::open(fixture.scratch / "next", "", kReserve)->edge_count(), 1u);
}

TEST(StoreCheckpoint, SaysSoWhereItCannotWrite) {
    Fixture fixture;
    std::ofstream(fixture.scratch / "file") << "x";
    EXPECT_THROW(fixture.store->save(fixture.scratch / "file"), StorageError);
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
