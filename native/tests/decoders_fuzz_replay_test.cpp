// Replays the corpus of the fuzz target of the decoders on every run of the tests, and damaged copies of it.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fuzz/decoders_fuzz.cpp"

namespace {

TEST(FuzzReplay, DecodersCorpusStaysHarmless) {
    const auto corpus = std::filesystem::path(__FILE__).parent_path() / "fuzz" / "corpus" / "decoders";
    std::mt19937 random(1);
    std::size_t replayed = 0;
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
        SCOPED_TRACE(entry.path().filename().string());
        for (int copy = 0; copy < 300; ++copy) {
            std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
            for (int damage = 0; damage < copy % 4 && !input.empty(); ++damage)
                input[random() % input.size()] = static_cast<std::uint8_t>(random());
            EXPECT_EQ(LLVMFuzzerTestOneInput(input.data(), input.size()), 0);
        }
        ++replayed;
    }
    EXPECT_GE(replayed, 10U);
}

}  // namespace
