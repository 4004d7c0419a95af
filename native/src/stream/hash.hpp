// Hash of an edge, for the tables of windows.
#pragma once

#include <bit>
#include <cstdint>

#include "mix.hpp"
#include "source.hpp"

namespace penstock {

inline std::uint32_t hash_edge(TermId subject, Label label, TermId object) {
    const std::uint64_t vertices =
        (subject + 0x9E3779B97F4A7C15ull * label) ^ std::rotl(object * 0xD6E8FEB86659FD93ull, 31);
    return static_cast<std::uint32_t>(mix(vertices) >> 32);
}

}  // namespace penstock
