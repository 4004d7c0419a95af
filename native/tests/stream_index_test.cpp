// The parts of a window's index against plain containers.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "rdf/term.hpp"
#include "stream/adjacency.hpp"
#include "stream/aged_groups.hpp"
#include "stream/record_queue.hpp"

namespace penstock {
namespace {

constexpr RecordId kFirstIds[] = {0, 1000, 0u - 700};  // ids may pass 2^32

/// What a window holds: records [head, head + size).
struct Queue {
    RecordId head;
    std::uint32_t size = 0;
    Held held() const { return {head, size}; }
    RecordId tail() const { return head + size; }
};

/// Keys with the hash that each has, in a table that is as bare as that of edges.
struct Keys {
    using Table = AgedGroups<void>;
    Table table;
    Queue queue;
    std::map<RecordId, std::uint32_t> keys, by_id;  // id -> key, id -> hash
    std::map<std::uint32_t, RecordId> ids;          // key -> its youngest record

    auto hash_of() {
        return [this](Table::Place at) { return by_id.at(at.id()); };
    }
    auto is(std::uint32_t key) {
        return [this, key](Table::Place at) { return keys.at(at.id()) == key; };
    }
    Table::Place find(std::uint32_t key, std::uint32_t hash) { return table.find(hash, queue.held(), is(key)); }

    void add(std::uint32_t key, std::uint32_t hash) {
        const RecordId id = queue.tail();
        ++queue.size;
        const auto [at, known] = table.find_or_take(hash, id, queue.held(), is(key), hash_of());
        ASSERT_EQ(known, ids.contains(key));
        if (known) {
            ASSERT_EQ(at.id(), ids[key]);
            table.renew(hash, at, id);
        }
        keys[id] = key;
        by_id[id] = hash;
        ids[key] = id;
    }
    void drop() {
        const auto old = ids.find(keys[queue.head]);
        bool sparse = false;
        if (old != ids.end() && old->second == queue.head) {
            const auto at = table.leave(by_id.at(queue.head), queue.head);
            ASSERT_EQ(at.id(), queue.head);
            sparse = table.is_sparse();
            ids.erase(old);
        }
        ++queue.head;
        --queue.size;
        if (sparse) table.fit(queue.held(), hash_of());
    }
};

TEST(AgedGroups, hold_what_has_a_record_whatever_the_hashes) {
    for (const RecordId first : kFirstIds) {
        for (const std::uint32_t hashes : {1u, 3u, 50u, 0xFFFFFFFFu}) {  // down to one hash for all
            SCOPED_TRACE(hashes);
            std::mt19937 random(hashes);
            Keys all{{}, {first}, {}, {}, {}};
            const auto hash = [=](std::uint32_t key) { return key % hashes * 0x9E3779B9u; };
            for (int step = 0; step < 6000 && !::testing::Test::HasFailure(); ++step) {
                const std::uint32_t key = random() % 300;
                if (step % 1500 < 700 || all.queue.size == 0)
                    all.add(key, hash(key));
                else
                    all.drop();
                ASSERT_EQ(all.table.size(), all.ids.size());
                const auto found = all.find(key, hash(key));
                ASSERT_EQ(static_cast<bool>(found), all.ids.contains(key));
                ASSERT_TRUE(!found || found.id() == all.ids[key]);
                if (step % 1000 == 0) all.table.forget_old_ids(all.queue.held());
            }
            std::size_t met = 0;
            all.table.each([&](auto at) { met += all.ids.at(all.keys.at(at.id())) == at.id(); });
            EXPECT_EQ(met, all.ids.size());
        }
    }
}

TEST(AgedGroups, a_search_ends_where_every_group_was_passed) {
    // Two groups of twelve: fill one, let a slot pass it; then the other, in its turn.
    Keys all{{}, {0}, {}, {}, {}};
    const std::uint32_t low = 0, high = 0xFFFFFFFF;
    std::uint32_t next = 0;
    all.table.reserve(8, all.queue.held(), all.hash_of());
    for (; next < 13; ++next) all.add(next, low);
    for (int gone = 0; gone < 10; ++gone) all.drop();
    for (; next < 26; ++next) all.add(next, high);
    EXPECT_FALSE(all.find(99, low));
    EXPECT_FALSE(all.find(99, high));
    for (std::uint32_t key = 10; key < 26; ++key) EXPECT_TRUE(all.find(key, key < 13 ? low : high));
}

TEST(AgedGroups, shrink_when_they_empty) {
    Keys all{{}, {0}, {}, {}, {}};
    for (std::uint32_t key = 0; key < 20'000; ++key) all.add(key, key * 0x9E3779B9u);
    const std::size_t full = all.table.bytes();
    while (all.queue.size > 10) all.drop();
    EXPECT_LT(all.table.bytes(), full / 100);
}

TEST(AgedGroups, an_id_that_comes_again_is_another) {
    Keys all{{}, {2}, {}, {}, {}};
    all.add(1, 7);
    all.drop();
    for (int part = 0; part < 7; ++part) {
        all.queue.head += 1u << 29;
        all.table.forget_old_ids(all.queue.held());
    }
    all.queue.head = 1;  // 2^32 records later
    for (std::uint32_t key = 2; key < 5; ++key) all.add(key, key + 6);
    EXPECT_FALSE(all.find(1, 7));
    for (std::uint32_t key = 2; key < 5; ++key) EXPECT_TRUE(all.find(key, key + 6));
}

/// Edges of an Adjacency with the record of the last time that each came, in the order of records.
struct Lists {
    Adjacency adjacency;
    Queue queue;
    struct Edge {
        TermId vertex, neighbour;
        bool superseded, later, in_block;  // as records store it
    };
    std::deque<Edge> edges;  // by records
    std::map<TermId, std::vector<std::pair<TermId, RecordId>>> lists;

    Edge& edge(RecordId id) { return edges[id - queue.head]; }

    void add(TermId vertex, TermId neighbour) {
        const RecordId id = queue.tail();
        ++queue.size;
        edges.push_back({vertex, neighbour, false, false, false});
        auto& list = lists[vertex];
        const auto known = std::find_if(list.begin(), list.end(), [=](const auto& e) { return e.first == neighbour; });
        const std::uint32_t hash = Adjacency::hash(vertex);
        const auto linked = known == list.end()
                                ? adjacency.add(vertex, hash, neighbour, id, queue.held())
                                : adjacency.refresh(vertex, hash, neighbour, known->second, id, queue.held());
        ASSERT_EQ(linked.first, list.empty());
        if (!linked.first) {
            ASSERT_EQ(linked.before, list.back().second);
            edge(linked.before).later = true;
        }
        edge(id).in_block = linked.in_block;
        if (known != list.end()) {
            edge(known->second).superseded = true;
            list.erase(known);
        }
        list.emplace_back(neighbour, id);
    }
    void drop() {
        const Edge old = edges.front();
        bool sparse = false;
        if (!old.superseded) {
            if (!old.later) sparse = adjacency.leave(Adjacency::hash(old.vertex), queue.head, old.in_block);
            auto& list = lists[old.vertex];
            ASSERT_EQ(list.front(), std::pair(old.neighbour, queue.head));
            list.erase(list.begin());
        }
        edges.pop_front();
        ++queue.head;
        --queue.size;
        if (sparse) adjacency.fit(queue.held());
    }
    void check() {
        std::size_t vertices = 0;
        for (const auto& [vertex, list] : lists) {
            std::vector<TermId> expected;
            for (const auto& [neighbour, id] : list) expected.push_back(neighbour);
            ASSERT_EQ(adjacency.degree(vertex, queue.held()), expected.size());
            const auto found = adjacency.neighbours(vertex, Adjacency::hash(vertex), queue.held());
            ASSERT_EQ(std::vector<TermId>(found.begin(), found.end()), expected);
            ASSERT_EQ(adjacency.has(vertex, Adjacency::hash(vertex), queue.held()), !expected.empty());
            vertices += !expected.empty();
        }
        ASSERT_EQ(adjacency.vertices(), vertices);
    }
};

void run_adjacency(std::uint64_t seed, RecordId first_id) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Lists all{{}, {first_id}, {}, {}};
    const std::size_t aim = std::size_t{1} << (seed % 10);  // list lengths from inline to long
    const std::uint64_t vertices = seed % 2 == 0 ? 3 : 200;
    for (int step = 0; step < 6000 && !::testing::Test::HasFailure(); ++step) {
        if (all.queue.size > 2 * vertices * (random() % aim + 1))
            all.drop();
        else
            all.add(1 + random() % vertices, 1 + random() % (4 * aim));
        if (random() % 50 == 0) all.check();
        if (step % 1000 == 0) all.adjacency.forget_old_ids(all.queue.held());
    }
    all.check();
    while (all.queue.size > 0 && !::testing::Test::HasFailure()) all.drop();
    all.check();
    EXPECT_LT(all.adjacency.bytes(), 1000u);
}

TEST(Adjacency, keeps_lists_in_the_order_of_coming) {
    for (std::uint64_t seed = 0; seed < 40 && !HasFailure(); ++seed) run_adjacency(seed, 0);
}

TEST(Adjacency, ids_may_pass_two_to_the_thirty_second) {
    for (std::uint64_t seed = 0; seed < 20 && !HasFailure(); ++seed) run_adjacency(seed, 0u - 700);
}

TEST(Adjacency, a_hub_costs_no_more_than_other_vertices_and_leaves_no_memory) {
    constexpr std::uint32_t n = 400'000;  // quadratic costs would take minutes
    Adjacency adjacency;
    const TermId hub = 7;
    const std::uint32_t hash = Adjacency::hash(hub);
    for (RecordId id = 0; id < n; ++id) adjacency.add(hub, hash, 100 + id, id, {0, id + 1});
    for (RecordId id = 0; id < n; ++id) {
        const auto place = static_cast<RecordId>((id * 7919ull) % n);
        adjacency.refresh(hub, hash, 100 + place, place, n + id, {0, n + id + 1});
    }
    EXPECT_EQ(adjacency.degree(hub, {0, 2 * n}), n);
    EXPECT_EQ(adjacency.degree(hub, {n + 5, n - 5}), n - 5);
    EXPECT_EQ(adjacency.neighbours(hub, hash, {2 * n - 2, 2}).size(), 2u);
    adjacency.leave(hash, 2 * n - 1, true);
    EXPECT_EQ(adjacency.vertices(), 0u);
    EXPECT_LT(adjacency.bytes(), 1000u);
}

TEST(RecordQueue, is_a_queue_of_any_length_from_any_number) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1000}, (std::uint64_t{1} << 32) - 500}) {
        std::mt19937_64 random(first);
        RecordQueue queue;
        queue.reset(first);
        std::uint64_t head = first, tail = first;
        for (int step = 0; step < 2000; ++step) {
            for (std::uint64_t n = random() % (step % 400 < 200 ? 40 : 10); n > 0;) {
                const auto fresh = queue.extend(n);
                for (Record& record : fresh) record = {static_cast<std::int64_t>(tail++), 0, 0, 0, 0};
                n -= fresh.size();
            }
            head = std::min(tail, head + random() % (step % 400 < 200 ? 10 : 60));
            queue.drop(head);
            ASSERT_EQ(queue.head(), head);
            ASSERT_EQ(queue.tail(), tail);
            for (std::uint64_t at = head; at < tail; at += 1 + random() % 50)
                ASSERT_EQ(queue.at(at).ts, static_cast<std::int64_t>(at));
            const std::uint64_t asked = head + random() % 100;
            ASSERT_EQ(queue.first_after(static_cast<std::int64_t>(asked)), std::min(tail, asked + 1));
        }
        queue.drop(tail);
        EXPECT_LE(queue.bytes(), 64u << 10);
    }
}

}  // namespace
}  // namespace penstock
