// The order of ORDER BY, independently of how the rows are stored (ADR 89).
#pragma once

#include <cstddef>
#include <span>

#include "expr/expression.hpp"

namespace penstock::exec {

struct SortKey {
    std::size_t column;  // that has its values
    bool descending;
};

/// The comparison by the first sort key that differs; 0 if no key differs. order(k): the comparison of the two rows by
/// key k.
template <class Order>
int first_difference(std::span<const SortKey> keys, Order order) {
    for (std::size_t k = 0; k < keys.size(); ++k)
        if (const int found = order(k); found != 0) return keys[k].descending ? -found : found;
    return 0;
}

/// The order of two rows whose cells are a(column) and b(column). 0: the rows have the same terms in the first
/// `carried` columns. All other columns depend on these columns.
///
/// Keys are compared by value: 15 and 15.0 are equal, so the next key decides. Rows that are equal in all keys are
/// ordered by the spelling of their keys, and then by the ids of all terms. The order therefore does not depend on the
/// order of arrival, unless rows differ only in blank nodes of this run.
template <class CellOfA, class CellOfB>
int compare_rows(std::span<const SortKey> keys, std::size_t carried, CellOfA a, CellOfB b, const LocalTerms& terms) {
    for (const auto compare : {value_compare, order_compare}) {
        const int order = first_difference(keys, [&](std::size_t k) {
            const TermId x = a(keys[k].column), y = b(keys[k].column);
            return x == y ? 0 : compare(x, y, terms);
        });
        if (order != 0) return order;
    }
    for (std::size_t c = 0; c < carried; ++c) {
        const TermId x = a(c), y = b(c);
        if (x == y) continue;
        // The ids of terms that this run has computed depend on the order of computation.
        const bool run_terms = tag_of(x) == Tag::Local && tag_of(y) == Tag::Local;
        if (const int order = run_terms ? order_compare(x, y, terms) : 0; order != 0) return order;
        return x < y ? -1 : 1;
    }
    return 0;
}

}  // namespace penstock::exec
