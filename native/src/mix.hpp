// One mixing function for every hash of the core.
#pragma once

#include <cstdint>

namespace penstock {

/// Every input bit reaches the top bits, which tables and shards are chosen by: dictionary ids are dense numbers, and
/// inline ids carry their variation anywhere in the word. Saved regions and the split into shards depend on it: another
/// function is another layout version (store/layout.hpp).
constexpr std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 32;
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 32);
}

}  // namespace penstock
