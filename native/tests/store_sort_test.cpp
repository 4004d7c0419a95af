// Sorting the ends of edges, by whichever of its ways, against std::set.
#include "store/sort.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace penstock {
namespace {

using Ends = std::vector<Keyed>;

/// Ends as they are in a commit: few labels, ids of some kinds.
Ends random_ends(std::size_t n, std::uint64_t ids, const std::vector<Tag>& tags, std::mt19937_64& random) {
    const auto id = [&] { return make_id(tags[random() % tags.size()], random() % ids); };
    Ends ends;
    for (std::size_t i = 0; i < n; ++i) ends.push_back({id(), static_cast<Label>(1 + random() % 5), id()});
    return ends;
}

template <class Key>
std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> keys(const Ends& ends, Key key) {
    std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> all;
    for (const Keyed& end : ends) all.push_back(key(end));
    return all;
}

template <class Key>
void expect_sorted(const Ends& before, void (*sort)(Ends&), Key key) {
    const auto all = keys(before, key);
    const std::set expected(all.begin(), all.end());
    Ends ends = before;
    sort(ends);
    EXPECT_EQ(keys(ends, key), std::vector(expected.begin(), expected.end())) << before.size() << " ends";
}

TEST(StoreSort, OrdersEndsOfAnyKindAndDropsRepetitions) {
    std::mt19937_64 random(3);
    const std::vector<std::vector<Tag>> kinds = {{Tag::Iri}, {Tag::Iri, Tag::Integer, Tag::String}};
    for (const std::size_t n : {0, 1, 2, 3, 50, 95, 96, 97, 255, 256, 257, 3000})
        for (const std::uint64_t ids : {1ull, 10ull, 300ull, 1ull << 20, 1ull << 28, 1ull << 29, 1ull << 59})
            for (const auto& tags : kinds) {
                const Ends ends = random_ends(n, ids, tags, random);
                expect_sorted(ends, sort_ends, [](const Keyed& e) { return std::tuple(e.vertex, e.label, e.value); });
                expect_sorted(ends, sort_by_label,
                              [](const Keyed& e) { return std::tuple(e.label, e.vertex, e.value); });
            }
}

TEST(StoreSort, LeavesWhatIsInOrder) {
    Ends ends;
    for (std::uint64_t i = 0; i < 500; ++i) ends.push_back({make_id(Tag::Iri, i / 3), 7, make_id(Tag::Iri, i)});
    expect_sorted(ends, sort_ends, [](const Keyed& e) { return std::tuple(e.vertex, e.label, e.value); });
}

}  // namespace
}  // namespace penstock
