// Operations on whole answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/table.hpp"

namespace penstock::exec {

/// Sorts the rows by the values of one column, keeping the order of equals.
void sort_by(Table& table, std::size_t column);

/// Row numbers of a that remain when b's rows are taken away one for one: of equal rows in a the first ones go. a and b
/// have the same number of columns, which are compared as plain values.
std::vector<std::int64_t> multiset_difference(std::span<const std::span<const TermId>> a, std::size_t a_rows,
                                              std::span<const std::span<const TermId>> b, std::size_t b_rows);

}  // namespace penstock::exec
