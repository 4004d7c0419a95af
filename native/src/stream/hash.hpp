// Hashes for the tables of windows.
#pragma once

#include <cstdint>

#include "mix.hpp"
#include "source.hpp"

namespace penstock {

inline std::uint32_t hash_id(std::uint64_t id) { return static_cast<std::uint32_t>(mix(id) >> 32); }

inline std::uint32_t hash_edge(TermId subject, Label label, TermId object) {
    return hash_id(mix(subject ^ (std::uint64_t{label} << 32)) ^ object);
}

}  // namespace penstock
