// Hashes of ids for the tables of windows. Dictionary ids are dense numbers and inline ids carry their variation
// anywhere in the word; a folded product takes in all of it.
#pragma once

#include <cstdint>

#include "rdf/hash.hpp"
#include "source.hpp"

namespace penstock {

inline std::uint32_t hash_id(std::uint64_t id) {
    using namespace hash_detail;
    return static_cast<std::uint32_t>(fold(id ^ kOdd0, kOdd1) >> 32);
}

inline std::uint32_t hash_edge(TermId subject, Label label, TermId object) {
    using namespace hash_detail;
    return static_cast<std::uint32_t>(fold(fold(subject ^ kOdd0, kOdd1 + label) ^ object, kOdd2) >> 32);
}

}  // namespace penstock
