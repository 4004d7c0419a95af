// Operations on whole answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/table.hpp"

namespace penstock::exec {

/// Sorts the rows by the values of one column; stable.
void sort_by(Table& table, std::size_t column);

/// For each row of b, removes one equal row of a. Of several equal rows of a, the first rows are removed. Returns the
/// numbers of the remaining rows of a. a and b have the same number of columns. Cells are compared as plain values.
std::vector<std::int64_t> multiset_difference(std::span<const std::span<const TermId>> a, std::size_t a_rows,
                                              std::span<const std::span<const TermId>> b, std::size_t b_rows);

}  // namespace penstock::exec
