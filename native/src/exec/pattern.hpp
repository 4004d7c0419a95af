// The common part of triple patterns and property paths: an input, two ends, a graph, and rows extended by matches.
#pragma once

#include <span>
#include <vector>

#include "exec/compiler.hpp"
#include "exec/dataset.hpp"
#include "exec/few.hpp"

namespace penstock::exec {

/// Matches of a pattern against rows of its input: match i extends input row rows[i] by the values of the four
/// positions. If s or o is null, the row's own value is used. Predicate and graph are the same for all matches.
struct MatchBatch {
    std::span<const std::uint32_t> rows;
    const TermId* s = nullptr;
    const TermId* o = nullptr;
    TermId p = 0;
    TermId g = 0;
};

/// Base of operators that extend their input by matches of a pattern with the positions s, p, o, g.
class PatternOperator : public Unary {
protected:
    enum Position : std::uint8_t { S, P, O, G };

    /// `p` is null for paths. If `keep` is set, other slots are omitted from the output.
    PatternOperator(OperatorPtr in, const TermRef& s, const TermRef* p, const TermRef& o, int graph_slot,
                    const std::vector<Slot>* keep = nullptr);

    /// One end or the predicate of the pattern: bound by a column of the input, constant, or free.
    struct End {
        int column = -1;
        TermId constant = 0;
        bool free() const { return column < 0 && constant == 0; }
    };
    End s_, p_, o_, g_;

    /// Starts a morsel; all batches until finish_input() refer to its rows. Throws Error if a slot that must be bound
    /// is unbound.
    void start_input(const Table& rows);
    /// Appends the batch's rows to the output. False if the consumer wants no more.
    bool emit(const MatchBatch& batch);
    /// Appends every match (s[i], o[i]) to each of the input rows `rows`. A null pointer has the same meaning as in
    /// MatchBatch.
    bool emit_product(std::span<const std::uint32_t> rows, std::size_t matches, MatchBatch batch);
    /// Pushes the remaining output.
    bool finish_input();

    /// Calls f(rows, predicate, graph) for the input's rows, partitioned by their values in bound predicate and graph
    /// columns (0 if there is no such column). Returns false as soon as f returns false.
    template <class F>
    bool partition(F&& f);

    const Table& input() const { return *input_; }
    std::span<const std::uint32_t> all_rows() const;

private:
    struct NewColumn {
        Position position;
        std::size_t column;
    };
    struct FreePosition {
        Position position;
        Slot slot;
    };
    static constexpr std::size_t kPositions = 4;
    bool append(MatchBatch batch);
    MatchBatch only_equal(const MatchBatch& batch);
    TermId value(const MatchBatch& batch, Position position, std::size_t i) const;
    void sort_by_key(int first, int second);

    const Table* input_ = nullptr;
    Table table_;
    std::vector<std::size_t> carried_;  // input columns of the first output columns
    Few<NewColumn, kPositions> new_columns_;
    Few<int, kPositions> bound_columns_;                    // nullable input columns that must be bound
    Few<std::pair<Position, Position>, kPositions> equal_;  // free positions with the same variable
    std::vector<std::uint32_t> order_, equal_rows_, product_rows_;
    Column equal_s_, equal_o_, product_s_, product_o_;
};

template <class F>
bool PatternOperator::partition(F&& f) {
    if (p_.column < 0 && g_.column < 0) return f(all_rows(), p_.constant, TermId{0});
    sort_by_key(p_.column, g_.column);
    auto cell = [this](int column, std::uint32_t row, TermId otherwise) {
        return column < 0 ? otherwise : input_->columns[static_cast<std::size_t>(column)][row];
    };
    for (std::size_t from = 0; from < order_.size();) {
        TermId predicate = cell(p_.column, order_[from], p_.constant), graph = cell(g_.column, order_[from], 0);
        std::size_t to = from + 1;
        while (to < order_.size() && cell(p_.column, order_[to], p_.constant) == predicate &&
               cell(g_.column, order_[to], 0) == graph)
            ++to;
        if (!f(std::span<const std::uint32_t>(order_).subspan(from, to - from), predicate, graph)) return false;
        from = to;
    }
    return true;
}

}  // namespace penstock::exec
