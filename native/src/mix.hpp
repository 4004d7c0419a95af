// The mixing function of every hash in the core.
#pragma once

#include <cstdint>

namespace penstock {

/// Every input bit affects the top bits, which select the place in a table and the shard. That matters because
/// dictionary ids are dense numbers, and inline ids can vary in any part of the word. Saved regions and the split into
/// shards depend on this function: a different one requires a new layout version (store/layout.hpp).
constexpr std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 32;
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 32);
}

}  // namespace penstock
