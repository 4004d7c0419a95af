// The rows of an answer: columns of term ids, or a cross product of them (docs/adr/0047).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "rdf/term.hpp"

namespace penstock {

/// A column of an answer. Each value stands for `repeat` successive rows. After the last value, the first value follows
/// again. A column without repetitions has `repeat` 1, and as many values as the answer has rows.
struct SolutionColumn {
    std::span<const TermId> values;
    std::size_t repeat = 1;
};

struct SolutionRows {
    std::vector<std::string> variables;
    std::vector<SolutionColumn> columns;  // one per variable
    std::size_t rows = 0;
};

/// Walks through the values of a column, row by row. The column must not be empty.
class ColumnCursor {
public:
    explicit ColumnCursor(const SolutionColumn& column) : column_(column), left_(column.repeat) {}
    TermId value() const { return column_.values[at_]; }
    /// The value that follows after `rows` other values, or kUnbound. For prefetching.
    TermId ahead(std::size_t values) const {
        return at_ + values < column_.values.size() ? column_.values[at_ + values] : kUnbound;
    }
    void next() {
        if (--left_ > 0) return;
        left_ = column_.repeat;
        if (++at_ == column_.values.size()) at_ = 0;
    }
    /// Moves to a row.
    void seek(std::size_t row) {
        at_ = row / column_.repeat % column_.values.size();
        left_ = column_.repeat - row % column_.repeat;
    }

private:
    SolutionColumn column_;
    std::size_t at_ = 0;
    std::size_t left_;
};

}  // namespace penstock
