// Searches of sorted arrays side by side against one at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "store/lookup.hpp"

namespace penstock::lookup {
namespace {

std::vector<TermId> sorted_array(std::size_t n, std::mt19937_64& random) {
    std::vector<TermId> array(n);
    for (TermId& value : array) value = 1 + random() % (3 * n);
    std::sort(array.begin(), array.end());
    return array;
}

void expect_all_found(const std::vector<std::vector<TermId>>& arrays, std::size_t run, std::mt19937_64& random) {
    SortedSearches searches;
    std::vector<std::uint8_t> found(2000, 0), expected(2000, 0);
    const std::vector<TermId>* array = nullptr;
    for (std::size_t row = 0; row < found.size(); ++row) {
        if (row % run == 0) array = &arrays[random() % arrays.size()];
        const TermId value = random() % (3 * array->size() + 2);  // some before and behind all of them
        searches.add(array->data(), array->size(), value, &found[row]);
        expected[row] = std::binary_search(array->begin(), array->end(), value);
    }
    searches.finish();
    EXPECT_EQ(found, expected);
}

TEST(SortedSearches, find_what_is_there_in_arrays_of_every_length) {
    std::mt19937_64 random(1);
    for (std::size_t n = 1; n <= 300; ++n) {
        SCOPED_TRACE(n);
        expect_all_found({sorted_array(n, random)}, 1, random);
    }
}

TEST(SortedSearches, are_of_any_arrays_together) {
    std::mt19937_64 random(2);
    for (const std::size_t run : {1u, 2u, 7u, 8u, 50u}) {
        SCOPED_TRACE(run);
        std::vector<std::vector<TermId>> arrays;
        for (int i = 0; i < 20; ++i) arrays.push_back(sorted_array(1 + random() % 100, random));
        expect_all_found(arrays, run, random);
    }
}

TEST(SortedSearches, leave_what_was_found_before) {
    const std::vector<TermId> array{5, 7, 9};
    std::uint8_t found = 1;
    SortedSearches searches;
    searches.add(array.data(), array.size(), 8, &found);
    searches.finish();
    EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace penstock::lookup
