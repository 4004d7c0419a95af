// Counts of values and rows that come and go, against ordered maps: also in tables that are too large for the caches.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "exec/key_counts.hpp"
#include "expr/counted_values.hpp"
#include "expr/distinct.hpp"

namespace penstock::test {
namespace {

constexpr std::size_t kCalls = 1'000;  // between two calls of look_ahead() from 0

struct Change {
    std::uint32_t group;
    TermId id;
    std::int32_t by;
};

/// Changes of which each removal removes a value that occurs. `values`: about so many occur at the end of a growth.
std::vector<Change> changes(std::mt19937& random, std::size_t count, std::uint32_t groups, TermId values,
                            std::vector<Change>& held) {
    std::vector<Change> out;
    for (std::size_t i = 0; i < count; ++i) {
        const bool removes = !held.empty() && random() % 16 < (held.size() > values ? 12 : 4);
        if (!removes) {
            out.push_back({static_cast<std::uint32_t>(random() % groups), random() % (2 * values), 1});
            held.push_back(out.back());
            continue;
        }
        std::swap(held[random() % held.size()], held.back());
        out.push_back({held.back().group, held.back().id, -1});
        held.pop_back();
    }
    return out;
}

TEST(CountedValues, CountLikeAMap) {
    for (const TermId values : {TermId{20}, TermId{30'000}}) {
        std::mt19937 random(static_cast<unsigned>(values));
        expr::CountedValues counted;
        std::map<std::pair<std::uint32_t, TermId>, std::int32_t> model;
        std::vector<Change> held;
        for (int round = 0; round < 150; ++round) {
            const std::vector<Change> some = changes(random, kCalls, 7, values, held);
            for (std::size_t i = 0; i < some.size(); ++i) {
                counted.look_ahead(
                    i, some.size(), [&](std::size_t j) { return some[j].group; },
                    [&](std::size_t j) { return some[j].id; });
                const auto [group, id, by] = some[i];
                ASSERT_EQ(counted.add(group, id, by), (model[{group, id}] += by));
            }
        }
        std::map<std::pair<std::uint32_t, TermId>, std::int32_t> found;
        for (std::uint32_t group = 0; group < 8; ++group)
            counted.for_each(group, [&](TermId id, std::int32_t count) { found[{group, id}] = count; });
        std::erase_if(model, [](const auto& entry) { return entry.second == 0; });
        EXPECT_EQ(found, model);
    }
}

TEST(RowCounts, CountLikeAMap) {
    for (const TermId values : {TermId{20}, TermId{30'000}}) {
        std::mt19937 random(static_cast<unsigned>(values));
        expr::RowCounts counted(3);
        std::map<std::vector<TermId>, std::int32_t> model;
        std::vector<Change> held;
        for (int round = 0; round < 150; ++round) {
            const std::vector<Change> some = changes(random, kCalls, 7, values, held);
            std::vector<std::vector<TermId>> rows;
            std::vector<std::uint64_t> hashes;
            for (const Change& change : some) {
                rows.push_back({change.group, change.id, change.id / 3});
                hashes.push_back(expr::hash_of(rows.back()));
            }
            for (std::size_t i = 0; i < some.size(); ++i) {
                counted.look_ahead(hashes, i);
                ASSERT_EQ(counted.add(rows[i], hashes[i], some[i].by), model[rows[i]] += some[i].by);
            }
        }
    }
}

TEST(KeyCounts, RecordTheChangesOfAnUpdate) {
    std::mt19937 random(1);
    exec::KeyCounts counts;
    std::map<std::uint32_t, std::int64_t> model;
    std::size_t size = 10;
    for (int update = 0; update < 200; ++update) {
        if (update % 50 == 0) {
            counts.begin();
            model.clear();
            size = 10;
        } else {
            counts.begin_update(true);
        }
        const auto before = model;
        std::map<std::uint32_t, bool> changed;
        for (int table = 0; table < 3; ++table) {
            const int sign = table == 1 ? -1 : 1;
            std::vector<std::uint32_t> keys;
            for (int i = 0; i < 40; ++i) {
                const auto key = static_cast<std::uint32_t>(random() % size);
                if (sign < 0 && model[key] <= 0) continue;
                keys.push_back(key);
                model[key] += sign;
                changed[key] = true;
            }
            counts.add(keys, size, sign);
            size += random() % 3;
            counts.add({}, size, sign);
        }
        std::size_t empty = 0;
        std::vector<std::uint32_t> occurring, found;
        for (std::uint32_t key = 0; key < size; ++key) {
            ASSERT_EQ(counts.rows(key), model[key]);
            empty += model[key] == 0 ? 1 : 0;
            if (model[key] != 0) occurring.push_back(key);
        }
        counts.occurring(found);
        EXPECT_EQ(found, occurring);
        EXPECT_EQ(counts.empty(), empty);
        if (update % 50 == 0) continue;
        ASSERT_EQ(counts.changed().size(), changed.size());
        for (std::size_t i = 0; i < counts.changed().size(); ++i) {
            const std::uint32_t key = counts.changed()[i];
            EXPECT_TRUE(changed.contains(key) && counts.is_changed(key));
            const auto was = before.find(key);
            EXPECT_EQ(counts.before(i), was == before.end() ? 0 : was->second);
        }
    }
}

}  // namespace
}  // namespace penstock::test
