// The writer's cache of lists: hints and their filters by themselves, and lists that grow value by value, as
// streams make them, by commits of which some fail.
#include "store/list_hints.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "errors.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

TEST(ListHint, FiltersWhatAListSurelyHasNot) {
    std::mt19937_64 random(1);
    std::size_t passed = 0;
    for (int list = 0; list < 1000; ++list) {
        ListHint hint(8, 32, {16, 0});
        std::set<TermId> values;
        while (values.size() < 32) values.insert(iri(random() % 100'000));
        for (const TermId value : values) hint.add(value);
        for (const TermId value : values) ASSERT_TRUE(hint.may_hold(value));
        for (int other = 0; other < 100; ++other) passed += hint.may_hold(iri(200'000 + random() % 100'000)) ? 1 : 0;
    }
    EXPECT_LT(passed, 5000u);  // of 100,000
}

TEST(ListHints, KeepsHintsOfTheRightLengthInBoundedMemory) {
    ListHints hints;
    EXPECT_EQ(hints.find(8, 1), nullptr);
    hints.put({8, 5, {80, 2}});
    ASSERT_NE(hints.find(8, 5), nullptr);
    EXPECT_EQ(hints.find(8, 5)->tail().offset, 80u);
    EXPECT_EQ(hints.find(8, 5)->tail().first, 2u);
    EXPECT_EQ(hints.find(8, 6), nullptr);
    EXPECT_EQ(hints.find(16, 5), nullptr);
    std::size_t found = 0;
    for (std::uint64_t entry = 1; entry <= 1'000'000; ++entry) hints.put({entry * 8, 5, {entry * 16, 0}});
    for (std::uint64_t entry = 1; entry <= 1'000'000; ++entry) {
        const ListHint* hint = hints.find(entry * 8, 5);
        if (hint == nullptr) continue;
        ++found;
        ASSERT_EQ(hint->tail().offset, entry * 16);
    }
    EXPECT_GT(found, 60'000u);
    EXPECT_LE(hints.bytes(), std::size_t{4} << 20);
    hints.clear();
    EXPECT_EQ(hints.find(8'000'000, 5), nullptr);
}

/// Lists of all lengths up to some hundred, and commits that leave the region full, in between those that fit.
TEST(ListWriter, AppendsEachValueOnceWhateverFailsInBetween) {
    Fixture fixture(1, std::size_t{4} << 20);
    const Label l = fixture.label(0);
    std::mt19937_64 random(7);
    std::vector<Edge> too_many;
    for (std::uint64_t i = 0; i < 200'000; ++i) too_many.push_back({iri(i % 40), l, iri(1000 + i)});
    std::map<TermId, std::set<TermId>> expected;
    for (int commit = 0; commit < 1500; ++commit) {
        std::vector<Edge> edges;
        for (int i = 0; i < 6; ++i) {
            const std::uint64_t vertex = std::min(random() % 40, random() % 40);
            edges.push_back({iri(vertex), l, iri(100 + random() % (10 + vertex * 20))});
            expected[edges.back().subject].insert(edges.back().object);
        }
        fixture.add(edges);
        if (commit % 300 == 50) {
            EXPECT_THROW(fixture.add(too_many), LimitError);
        }
    }
    const auto view = fixture.store->view();
    std::size_t longest = 0;
    for (const auto& [vertex, objects] : expected) {
        EXPECT_EQ(neighbours(*view, vertex, l, Dir::Out), std::vector(objects.begin(), objects.end()));
        longest = std::max(longest, objects.size());
    }
    EXPECT_GT(longest, 100u);  // some are beyond the filters
}

}  // namespace
}  // namespace penstock::test
