// Terms of an answer as the columns of Arrow arrays.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rdf/term_columns.hpp"
#include "rdf/term_texts.hpp"

namespace penstock {

/// A column of terms. `kinds`: 0 for an unbound cell. `datatypes`, `langs`: an index of `names`, or -1 if the term has
/// none; empty if no term has one.
struct TermArrays {
    std::vector<std::uint8_t> kinds;
    TextColumn lexicals;
    std::vector<std::int32_t> datatypes, langs;
    std::vector<std::string> names;
};

/// The terms of a column of ids. LimitError if the texts exceed 2 GiB, because offsets have 32 bits.
TermArrays term_arrays(std::span<const TermId> ids, const TermTexts& terms);

}  // namespace penstock
