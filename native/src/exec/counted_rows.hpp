// Rows of terms with counts: the storage of RankedRows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "expr/expression.hpp"

namespace penstock::exec {

/// A list of rows of a fixed number of cells. A row can occur several times. Its count is then the sum of the counts. A
/// negative count removes occurrences of the same row that are already in the list, or that will be added later.
class CountedRows {
public:
    explicit CountedRows(std::size_t width) : stride_(width + 1) {}

    std::size_t size() const { return cells_.size() / stride_; }
    bool empty() const { return cells_.empty(); }
    std::size_t width() const { return stride_ - 1; }
    const TermId* row(std::size_t i) const { return cells_.data() + i * stride_; }
    std::int64_t count(std::size_t i) const { return static_cast<std::int64_t>(row(i)[width()]); }
    void push(const TermId* row, std::int64_t count) {
        cells_.insert(cells_.end(), row, row + width());
        cells_.push_back(static_cast<TermId>(count));
    }
    /// Appends rows [first, end) of another list.
    void append(const CountedRows& from, std::size_t first, std::size_t end) {
        cells_.insert(cells_.end(), from.row(first), from.row(end));
    }
    void truncate(std::size_t size) { cells_.resize(size * stride_); }
    void reserve(std::size_t size) { cells_.reserve(size * stride_); }
    void clear() { cells_.clear(); }
    /// Sum of all counts.
    std::int64_t total() const;
    /// Makes the rows distinct, and drops those whose count is 0. Their order is arbitrary. LimitError above 2^31 rows.
    void sum(Budget& budget);
    std::size_t bytes() const { return cells_.capacity() * sizeof(TermId); }

private:
    std::size_t stride_;
    std::vector<TermId> cells_;  // of each row, its cells and its count
};

}  // namespace penstock::exec
