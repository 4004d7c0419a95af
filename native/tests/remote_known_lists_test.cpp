// What an engine keeps of lists on other nodes.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "remote/known_lists.hpp"
#include "store/lookup.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

using remote::KnownExtent;
using remote::KnownList;
using remote::KnownLists;
using remote::ListKey;

const KnownList* find(KnownLists& lists, const ListKey& key, KnownLists::Hold& hold) {
    const KnownList* found = nullptr;
    lists.find({&key, 1}, {&found, 1}, hold);
    return found;
}

void put(KnownLists& lists, const ListKey& key, std::span<const TermId> values, Snapshot as_of) {
    const KnownExtent extent{4096, 0, static_cast<std::uint32_t>(values.size()), 0};
    const KnownLists::Reading reading{key,
                                      8,
                                      layout::make_state(as_of, static_cast<std::uint32_t>(values.size())),
                                      0,
                                      layout::make_state(as_of, static_cast<std::uint32_t>(values.size())),
                                      as_of,
                                      values,
                                      {&extent, 1}};
    lists.put({&reading, 1});
}

TEST(KnownLists, TellsRegionsVerticesLabelsAndDirectionsApart) {
    KnownLists lists(1 << 20);
    KnownLists::Hold hold;
    const TermId value = iri(7);
    const ListKey key{1, iri(1), 1, Dir::Out};
    put(lists, key, {&value, 1}, 3);
    ASSERT_NE(find(lists, key, hold), nullptr);
    EXPECT_EQ(find(lists, key, hold)->values[0], value);
    EXPECT_EQ(find(lists, {2, iri(1), 1, Dir::Out}, hold), nullptr);
    EXPECT_EQ(find(lists, {1, iri(2), 1, Dir::Out}, hold), nullptr);
    EXPECT_EQ(find(lists, {1, iri(1), 2, Dir::Out}, hold), nullptr);
    EXPECT_EQ(find(lists, {1, iri(1), 1, Dir::In}, hold), nullptr);
}

TEST(KnownLists, AnOlderReadingTakesNoNewerOnesPlace) {
    KnownLists lists(1 << 20);
    KnownLists::Hold hold;
    const std::vector<TermId> values{iri(7), iri(8)};
    const ListKey key{1, iri(1), 1, Dir::Out};
    put(lists, key, values, 5);
    put(lists, key, std::span(values).first(1), 4);
    EXPECT_EQ(find(lists, key, hold)->length(), 2u);
}

TEST(KnownLists, ForgetsWhatWasNotUsedForLongestAndKeepsWhatIsHeld) {
    constexpr std::size_t kBytes = std::size_t{4} << 20;
    KnownLists lists(kBytes);
    std::vector<TermId> values(100);
    const ListKey held{1, iri(1), 1, Dir::Out}, used{1, iri(2), 1, Dir::Out};
    KnownLists::Hold hold;
    put(lists, held, std::vector<TermId>(100, iri(9)), 1);
    put(lists, used, values, 1);
    const KnownList* const list = find(lists, held, hold);
    for (std::uint64_t v = 10; v < 40'000; ++v) {
        std::iota(values.begin(), values.end(), v);
        put(lists, {1, iri(v), 1, Dir::Out}, values, 1);
        ASSERT_LE(lists.bytes(), kBytes + (128 << 10));
        KnownLists::Hold moment;
        ASSERT_NE(find(lists, used, moment), nullptr);
    }
    KnownLists::Hold now;
    EXPECT_EQ(find(lists, held, now), nullptr);
    EXPECT_EQ(list->values[99], iri(9));
    EXPECT_NE(find(lists, {1, iri(39'999), 1, Dir::Out}, now), nullptr);
}

TEST(KnownLists, ListsThatWouldFillMostOfTheCacheAreNotCached) {
    KnownLists lists(1 << 20);
    KnownLists::Hold hold;
    const ListKey key{1, iri(1), 1, Dir::Out};
    put(lists, key, std::vector<TermId>(10'000), 1);
    EXPECT_EQ(find(lists, key, hold), nullptr);
}

TEST(KnownLists, FindsAValueInSortedAndUnsortedParts) {
    KnownLists lists(1 << 20);
    KnownLists::Hold hold;
    std::vector<TermId> values(100);
    std::iota(values.begin(), values.end(), 1000);           // a sorted extent of 100
    for (TermId v = 500; v > 450; --v) values.push_back(v);  // and one that is not
    const std::vector<KnownExtent> extents{{4096, 0, 100, 100}, {8192, 100, 64, 1}};
    const ListKey key{1, iri(1), 1, Dir::Out};
    const KnownLists::Reading reading{key,    8,      layout::make_state(1, 150), 0, layout::make_state(1, 150), 1,
                                      values, extents};
    lists.put({&reading, 1});
    const KnownList* const list = find(lists, key, hold);
    for (std::uint32_t i = 0; i < values.size(); ++i) EXPECT_EQ(list->find(values[i]), i);
    EXPECT_EQ(list->find(999), lookup::kAbsent);
    EXPECT_EQ(list->find(501), lookup::kAbsent);
}

TEST(KnownLists, ThreadsThatReadWhatOthersReplaceAndForgetSeeWholeLists) {
    constexpr std::uint64_t kKeys = 200;
    KnownLists lists(1 << 20);
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread)
        threads.emplace_back([&lists, thread] {
            for (std::uint64_t i = 0; i < 4'000; ++i) {
                const std::uint64_t v = (i * 7 + thread * 31) % kKeys;
                const ListKey key{1, iri(v), 1, Dir::Out};
                KnownLists::Hold hold;
                if (const KnownList* const list = find(lists, key, hold)) {
                    list->confirm(static_cast<Snapshot>(i));
                    EXPECT_EQ(list->values[0], iri(v));
                    EXPECT_EQ(list->values.back(), iri(v));
                }
                put(lists, key, std::vector<TermId>(1 + i % 100, iri(v)), static_cast<Snapshot>(i));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace penstock::test
