// Replays the corpus of the fuzz target of mappings on every run of the tests.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/mapping_fuzz.cpp"

namespace {

TEST(FuzzReplay, MappingCorpusStaysHarmless) {
    const auto corpus = std::filesystem::path(__FILE__).parent_path() / "fuzz" / "corpus" / "mapping";
    std::size_t replayed = 0;
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
        SCOPED_TRACE(entry.path().filename().string());
        for (std::uint8_t program = 0; program < 7; ++program) {  // the file's own choice, and all
            std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
            if (!input.empty() && program > 0) input[0] = static_cast<std::uint8_t>(program - 1);
            EXPECT_EQ(LLVMFuzzerTestOneInput(input.data(), input.size()), 0);
        }
        ++replayed;
    }
    EXPECT_GE(replayed, 10U);
}

}  // namespace
