// Hashes of ids for the tables of windows. Dictionary ids are dense numbers and inline ids carry their variation
// anywhere in the word, so every input bit has to reach the top bits, which the tables use.
#pragma once

#include <bit>
#include <cstdint>

#include "source.hpp"

namespace penstock {

inline std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 32;
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 32);
}

inline std::uint32_t hash_edge(TermId subject, Label label, TermId object) {
    const std::uint64_t vertices =
        (subject + 0x9E3779B97F4A7C15ull * label) ^ std::rotl(object * 0xD6E8FEB86659FD93ull, 31);
    return static_cast<std::uint32_t>(mix(vertices) >> 32);
}

}  // namespace penstock
