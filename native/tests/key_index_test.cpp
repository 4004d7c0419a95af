// The index of keys against std::map, with few distinct keys, so that runs of the table are long and often broken.
#include "rdf/key_index.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace penstock {
namespace {

TEST(KeyIndex, AgreesWithAMap) {
    for (std::size_t width : {1u, 2u, 3u}) {
        std::mt19937_64 random(width);
        KeyIndex index(width);
        std::map<std::vector<TermId>, std::uint64_t> expected;
        for (std::uint64_t number = 1; number <= 200'000; ++number) {
            std::vector<TermId> key(width);
            const std::uint64_t keys = number % 50'000 < 25'000 ? 40 : 20'000;
            for (TermId& id : key) id = random() % keys;
            const auto found = expected.find(key);
            const std::uint64_t before = found == expected.end() ? 0 : found->second;
            ASSERT_EQ(index.find(key.data()), before);
            if (random() % 2) {
                ASSERT_EQ(index.put(key.data(), number), before);
                expected[key] = number;
            } else {
                ASSERT_EQ(index.remove(key.data()), before);
                expected.erase(key);
            }
            ASSERT_EQ(index.size(), expected.size());
        }
        for (const auto& [key, number] : expected) ASSERT_EQ(index.find(key.data()), number);
    }
}

}  // namespace
}  // namespace penstock
