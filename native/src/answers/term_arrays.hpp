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

/// A column of an earlier answer, with its rows sorted by member. Its ids must still have the same terms.
struct EarlierColumn {
    std::span<const TermId> members, ids;
    TextColumnView lexicals;
};

/// The terms of a column of ids. LimitError if the texts exceed 2 GiB, the most that offsets of 32 bits can address.
TermArrays term_arrays(std::span<const TermId> ids, const TermTexts& terms);
/// The same. `members`: the member of each row, ascending. IRIs that the member had in the earlier column are copied
/// from there, without access to the dictionary. DataError if columns differ in length.
TermArrays term_arrays(std::span<const TermId> ids, const TermTexts& terms, std::span<const TermId> members,
                       const EarlierColumn& earlier);

}  // namespace penstock
