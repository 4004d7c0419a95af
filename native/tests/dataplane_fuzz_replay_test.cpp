// Replays the corpus of the data plane's fuzz target, and some thousand mutations of it, on every run of the tests.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fuzz/dataplane_fuzz.cpp"

namespace {

std::vector<std::vector<std::uint8_t>> corpus() {
    std::vector<std::vector<std::uint8_t>> inputs;
    const auto folder = std::filesystem::path(__FILE__).parent_path() / "fuzz" / "corpus" / "dataplane";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream file(entry.path(), std::ios::binary);
        inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return inputs;
}

TEST(FuzzReplay, DataPlaneCorpusStaysHarmless) {
    const auto inputs = corpus();
    for (const auto& input : inputs) LLVMFuzzerTestOneInput(input.data(), input.size());
    EXPECT_GE(inputs.size(), 20u);
}

TEST(FuzzReplay, MutatedRequestsStayHarmless) {
    const auto inputs = corpus();
    std::mt19937 random(1);
    for (int i = 0; i < 5000; ++i) {
        auto input = inputs[random() % inputs.size()];
        if (input.size() > 4096) continue;
        const auto& other = inputs[random() % inputs.size()];
        for (std::uint32_t n = random() % 4; n > 0; --n) input[random() % input.size()] ^= 1u << random() % 8;
        if (random() % 2 == 0 && other.size() < 4096) input.insert(input.end(), other.begin() + 1, other.end());
        if (random() % 4 == 0) input.resize(1 + random() % input.size());
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
}

}  // namespace
