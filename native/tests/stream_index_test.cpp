// The parts of a window's index against plain containers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "rdf/term.hpp"
#include "stream/adjacency.hpp"
#include "stream/hash_groups.hpp"
#include "stream/record_queue.hpp"

namespace penstock {
namespace {

using Numbers = HashGroups<HashedNumber>;

auto is(std::uint32_t number) {
    return [number](const HashedNumber& slot) { return slot.number == number; };
}

TEST(HashGroups, hold_what_was_put_in_whatever_the_hashes) {
    for (const std::uint32_t hashes : {1u, 3u, 50u, 0xFFFFFFFFu}) {  // down to one hash for all
        SCOPED_TRACE(hashes);
        std::mt19937 random(hashes);
        Numbers table;
        std::map<std::uint32_t, std::uint32_t> model;  // number -> hash
        for (int step = 0; step < 6000; ++step) {
            if (step % 1500 < 700 || model.empty()) {
                const std::uint32_t number = static_cast<std::uint32_t>(step), hash = random() % hashes * 0x9E3779B9u;
                table.insert(hash, {hash, number});
                model[number] = hash;
            } else {
                auto gone = std::next(model.begin(),
                                      static_cast<std::ptrdiff_t>(random() % std::min<std::size_t>(20, model.size())));
                table.erase(gone->second, table.find(gone->second, is(gone->first)));
                ASSERT_EQ(table.find(gone->second, is(gone->first)), nullptr);
                model.erase(gone);
            }
            ASSERT_EQ(table.size(), model.size());
        }
        for (const auto& [number, hash] : model) ASSERT_NE(table.find(hash, is(number)), nullptr);
        std::size_t met = 0;
        table.each([&](const HashedNumber&) { ++met; });
        EXPECT_EQ(met, model.size());
    }
}

TEST(HashGroups, a_search_ends_where_every_group_was_passed) {
    // Two groups of seven: fill one, let a slot pass it; then fill the other, let one pass that too.
    Numbers table;
    const std::uint32_t low = 0, high = 0x80000000;
    table.reserve(6);
    std::uint32_t next = 0;
    for (; next < 8; ++next) table.insert(low, {low, next});
    for (std::uint32_t number = 0; number < 5; ++number) table.erase(low, table.find(low, is(number)));
    for (; next < 15; ++next) table.insert(high, {high, next});
    EXPECT_EQ(table.find(low, is(99)), nullptr);
    EXPECT_EQ(table.find(high, is(99)), nullptr);
}

TEST(HashGroups, shrink_when_they_empty) {
    Numbers table;
    const auto hash = [](std::uint32_t number) { return number * 0x9E3779B9u; };
    for (std::uint32_t number = 0; number < 100'000; ++number) table.insert(hash(number), {hash(number), number});
    const std::size_t full = table.bytes();
    for (std::uint32_t number = 0; number < 99'990; ++number) {
        table.erase(hash(number), table.find(hash(number), is(number)));
    }
    EXPECT_LT(table.bytes(), full / 1000);
}

/// Edges of an Adjacency with the id of the last time that each came.
using Lists = std::map<TermId, std::vector<std::pair<TermId, std::uint32_t>>>;

void check(Adjacency& adjacency, const Lists& model) {
    std::size_t vertices = 0;
    for (const auto& [vertex, list] : model) {
        std::vector<TermId> expected;
        for (const auto& [neighbour, id] : list) expected.push_back(neighbour);
        const auto found = adjacency.neighbours(vertex);
        ASSERT_EQ(std::vector<TermId>(found.begin(), found.end()), expected);
        ASSERT_EQ(adjacency.degree(vertex), expected.size());
        ASSERT_EQ(adjacency.has(vertex), !expected.empty());
        vertices += !expected.empty();
    }
    ASSERT_EQ(adjacency.vertices(), vertices);
}

/// Adds, repeats and removes: oldest first as windows do, or anywhere as the labels of a vertex do.
void run_adjacency(std::uint64_t seed, bool oldest_first, std::uint32_t first_id) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Adjacency adjacency;
    Lists model;
    std::uint32_t id = first_id;
    const std::size_t aim = std::size_t{1} << (seed % 10);  // list lengths from inline to long
    for (int step = 0; step < 4000; ++step) {
        const TermId vertex = 1 + random() % 3, neighbour = 1 + random() % (4 * aim);
        auto& list = model[vertex];
        const auto known =
            std::find_if(list.begin(), list.end(), [=](const auto& edge) { return edge.first == neighbour; });
        if (list.size() > 2 * (random() % aim + 1)) {
            const auto gone =
                oldest_first ? list.begin() : list.begin() + static_cast<std::ptrdiff_t>(random() % list.size());
            ASSERT_EQ(adjacency.remove(vertex, gone->first), list.size() == 1);
            list.erase(gone);
        } else if (known == list.end()) {
            ASSERT_EQ(adjacency.add(vertex, neighbour, id), list.empty());
            list.emplace_back(neighbour, id++);
        } else if (oldest_first) {
            adjacency.refresh(vertex, neighbour, known->second, id);
            list.erase(known);
            list.emplace_back(neighbour, id++);
        }
        if (random() % 50 == 0) check(adjacency, model);
    }
    check(adjacency, model);
}

TEST(Adjacency, keeps_lists_in_the_order_of_coming) {
    for (std::uint64_t seed = 0; seed < 40 && !HasFailure(); ++seed) run_adjacency(seed, true, 0);
}

TEST(Adjacency, ids_may_pass_two_to_the_thirty_second) {
    for (std::uint64_t seed = 0; seed < 10 && !HasFailure(); ++seed) run_adjacency(seed, true, 0u - 700);
}

TEST(Adjacency, removes_from_anywhere) {
    for (std::uint64_t seed = 0; seed < 40 && !HasFailure(); ++seed) run_adjacency(seed, false, 0);
}

TEST(Adjacency, a_hub_costs_no_more_than_other_vertices_and_leaves_no_memory) {
    constexpr std::uint32_t n = 400'000;  // quadratic costs would take minutes
    Adjacency adjacency;
    const TermId hub = 7;
    for (std::uint32_t id = 0; id < n; ++id) adjacency.add(hub, 100 + id, id);
    for (std::uint32_t id = 0; id < n; ++id)
        adjacency.refresh(hub, 100 + (id * 7919ull) % n, static_cast<std::uint32_t>((id * 7919ull) % n), n + id);
    EXPECT_EQ(adjacency.degree(hub), n);
    for (std::uint32_t id = 0; id < n; ++id) adjacency.remove(hub, 100 + (id * 7919ull) % n);
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
            for (std::uint64_t n = random() % (step % 400 < 200 ? 40 : 10); n > 0; --n) {
                Record record{};
                record.ts = static_cast<std::int64_t>(tail++);
                queue.push(record);
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
