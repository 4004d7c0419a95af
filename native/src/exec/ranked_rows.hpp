// The first rows of an order, while rows are added and removed (ADR 89).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "exec/counted_rows.hpp"
#include "exec/row_order.hpp"
#include "expr/term_copy.hpp"

namespace penstock::exec {

struct RankedShape {
    std::vector<SortKey> keys;
    std::size_t carried;  // cells of a row that are part of the answer; sort keys that are not among them follow
    std::size_t width;    // all cells
};

/// A multiset of rows in which only the first rows are in order. The other rows are divided into leaves by ranges of
/// the order, and have no order within a leaf. A change of such a row only adds an entry to a leaf, without a search or
/// a move. If too few rows remain in front, the rows of the next leaf are sorted, or the next leaf is divided further
/// (compare Paredes and Navarro, Optimal Incremental Sorting, 2006).
class RankedRows {
public:
    /// The number of further rows in front. It is so large that few removals need rows of a leaf.
    static constexpr std::size_t kSlack = 256;
    /// `first`: the number of required rows. If there are enough rows, at least `slack` (or `first`) further rows are
    /// in front. The shape must outlive the object.
    RankedRows(const RankedShape& shape, std::size_t first, std::size_t slack = kSlack);

    /// Adds `count` occurrences of a row. A negative count removes occurrences. Before settle(), the removal of a row
    /// can precede its addition.
    void add(const TermId* row, std::int64_t count, const LocalTerms& terms);
    /// Applies the changes. The terms of the remaining rows must be in the dictionary. The terms of removed rows can be
    /// missing.
    void settle(ExprContext& context);
    /// Calls visit(cells, count) for the first rows, in order. The sum of the counts can exceed `first` only by the
    /// count of the last row.
    template <class Visit>
    void for_each_first(Visit visit) const {
        std::int64_t left = static_cast<std::int64_t>(first_);
        for (std::size_t i = 0; i < front_.size() && left > 0; ++i) {
            if (front_.count(i) <= 0) continue;
            visit(front_.row(i), std::min(left, front_.count(i)));
            left -= front_.count(i);
        }
    }
    /// The number of entries of all lists. A removed row has two entries until the list is summed up.
    std::size_t size() const;
    std::size_t bytes() const;
    std::size_t leaves() const { return leaves_.size(); }

private:
    /// The start of a leaf's range. The row that marks the start was possibly removed since.
    struct Bound {
        std::vector<TermId> cells;
        std::vector<TermCopy> keys;
    };
    struct Leaf {
        Bound from;
        CountedRows rows;
        std::int64_t total = 0;  // of the counts
        std::size_t summed = 0;  // entries after the last summation
    };
    /// A leaf with more entries is divided. The summation of a leaf therefore takes at most a few milliseconds.
    static constexpr std::size_t kMostInLeaf = std::size_t{1} << 16;

    using Leaves = std::vector<Leaf>;

    std::size_t most() const { return first_ + 2 * slack_; }
    int compare(const TermId* a, const TermId* b, const LocalTerms& terms) const;
    bool before(const TermId* row, const Bound& bound, const LocalTerms& terms) const;
    std::pair<Leaves::iterator, Leaves::iterator> candidates(const TermId* row);
    std::int64_t start_of(TermId key) const;
    void list_starts();
    Bound bound(const TermId* row, const LocalTerms& terms) const;
    void require_keys(const CountedRows& rows, ExprContext& context) const;
    CountedRows sorted(const CountedRows& rows, ExprContext& context) const;
    void merge(ExprContext& context);
    void make_leaf_of_all(ExprContext& context);
    void tidy(ExprContext& context);
    void sum(Leaf& leaf, ExprContext& context);
    void divide(std::size_t number, ExprContext& context);
    void refill(ExprContext& context);
    void spill(const LocalTerms& terms);

    const RankedShape& shape_;
    std::size_t first_, slack_;
    CountedRows front_;                 // the rows before those of all leaves: sorted, distinct
    CountedRows pending_;               // changes of the front
    std::int64_t in_front_ = 0;         // rows of the front
    Leaves leaves_;                     // ascending
    std::vector<std::int64_t> starts_;  // first keys of the leaves, negative if descending; empty: not all are integers
    bool changed_ = false;
};

}  // namespace penstock::exec
