// Hashes for the tables of windows.
#pragma once

#include <cstdint>

#include "mix.hpp"
#include "source.hpp"

namespace penstock {

inline std::uint32_t hash_id(std::uint64_t id) { return static_cast<std::uint32_t>(mix(id) >> 32); }

inline std::uint32_t hash_edge(TermId subject, Label label, TermId object) {
    // A sum of products with unrelated odd constants. Two triples that differ in only one component therefore never
    // have the same sum.
    return hash_id(subject * 0xD6E8FEB86659FD93ull + object * 0xA0761D6478BD642Full + label);
}

}  // namespace penstock
