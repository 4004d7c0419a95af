#include "exec/pattern.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>

#include "exec/kernels.hpp"

namespace penstock::exec {

namespace {

constexpr auto kRowNumbers = [] {
    std::array<std::uint32_t, kMorsel> numbers{};
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
}();

}  // namespace

PatternOperator::PatternOperator(OperatorPtr in, const TermRef& s, const TermRef* p, const TermRef& o, int graph_slot,
                                 const std::vector<Slot>* keep)
    : Unary(std::move(in)) {
    const Schema& from = in_->schema();
    const auto is_output = [keep](Slot slot) {
        return keep == nullptr || std::find(keep->begin(), keep->end(), slot) != keep->end();
    };
    for (std::size_t c = 0; c < from.slots.size(); ++c) {
        if (!is_output(from.slots[c])) continue;
        carried_.push_back(c);
        schema_.add(from.slots[c], from.nullable[c] != 0);
    }
    Few<FreePosition, kPositions> free;
    auto bind_end = [&](const TermRef& ref, Position position) {
        End end;
        if (ref.omitted) return end;
        if (!ref.variable) {
            end.constant = ref.id;
            return end;
        }
        end.column = from.index_of(ref.slot);
        if (end.column >= 0) {
            if (from.nullable[static_cast<std::size_t>(end.column)]) bound_columns_.push_back(end.column);
            if (int bound = schema_.index_of(ref.slot); bound >= 0)
                schema_.nullable[static_cast<std::size_t>(bound)] = 0;
            return end;
        }
        const auto same =
            std::find_if(free.begin(), free.end(), [&](auto earlier) { return earlier.slot == ref.slot; });
        if (same != free.end()) {
            equal_.push_back({same->position, position});
            return end;
        }
        free.push_back({position, ref.slot});
        if (is_output(ref.slot)) {
            new_columns_.push_back({position, schema_.slots.size()});
            schema_.add(ref.slot, false);
        }
        return end;
    };
    s_ = bind_end(s, S);
    if (p != nullptr) p_ = bind_end(*p, P);
    o_ = bind_end(o, O);
    if (graph_slot >= 0) g_ = bind_end({true, static_cast<Slot>(graph_slot), 0}, G);
    schema_.shape(table_);
}

std::span<const std::uint32_t> PatternOperator::all_rows() const { return {kRowNumbers.data(), input_->rows}; }

void PatternOperator::start_input(const Table& rows) {
    input_ = &rows;
    for (int column : bound_columns_) {
        const Column& cells = rows.columns[static_cast<std::size_t>(column)];
        if (std::find(cells.begin(), cells.end(), kUnbound) != cells.end())
            throw Error("plan: slot " + std::to_string(rows.slots[static_cast<std::size_t>(column)]) +
                        " is unbound in the input of a pattern that takes it as bound");
    }
    for (Column& column : table_.columns) column.clear();
    table_.rows = 0;
}

bool PatternOperator::finish_input() { return table_.rows == 0 || out_->push(table_); }

TermId PatternOperator::value(const MatchBatch& batch, Position position, std::size_t i) const {
    switch (position) {
        case S:
            assert(batch.s != nullptr);  // only free positions are compared
            return batch.s[i];
        case P:
            return batch.p;
        case O:
            assert(batch.o != nullptr);
            return batch.o[i];
        default:
            return batch.g;
    }
}

/// Selects the matches that have equal values in positions with the same variable.
MatchBatch PatternOperator::only_equal(const MatchBatch& batch) {
    equal_rows_.clear();
    equal_s_.clear();
    equal_o_.clear();
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        bool same = true;
        for (auto [a, b] : equal_) same = same && value(batch, a, i) == value(batch, b, i);
        if (!same) continue;
        equal_rows_.push_back(batch.rows[i]);
        if (batch.s != nullptr) equal_s_.push_back(batch.s[i]);
        if (batch.o != nullptr) equal_o_.push_back(batch.o[i]);
    }
    return {equal_rows_, batch.s == nullptr ? nullptr : equal_s_.data(), batch.o == nullptr ? nullptr : equal_o_.data(),
            batch.p, batch.g};
}

bool PatternOperator::emit(const MatchBatch& batch) { return append(equal_.empty() ? batch : only_equal(batch)); }

bool PatternOperator::append(MatchBatch batch) {
    while (!batch.rows.empty()) {
        std::size_t n = std::min(batch.rows.size(), kMorsel - table_.rows);
        auto rows = batch.rows.first(n);
        for (std::size_t c = 0; c < carried_.size(); ++c) gather(input_->columns[carried_[c]], rows, table_.columns[c]);
        for (const NewColumn& made : new_columns_) {
            Column& column = table_.columns[made.column];
            if (made.position == S)
                penstock::exec::append(column, batch.s, n);
            else if (made.position == O)
                penstock::exec::append(column, batch.o, n);
            else
                append_same(column, made.position == P ? batch.p : batch.g, n);
        }
        table_.rows += n;
        batch.rows = batch.rows.subspan(n);
        if (batch.s != nullptr) batch.s += n;
        if (batch.o != nullptr) batch.o += n;
        if (table_.rows == kMorsel) {
            run_->work(kMorsel);
            if (!out_->push(table_)) return false;
            for (Column& column : table_.columns) column.clear();
            table_.rows = 0;
        }
    }
    return true;
}

bool PatternOperator::emit_product(std::span<const std::uint32_t> rows, std::size_t matches, MatchBatch batch) {
    if (matches == 0 || rows.empty()) return true;
    const TermId *s = batch.s, *o = batch.o;
    std::size_t row = 0, match = 0;
    while (row < rows.size()) {
        product_rows_.clear();
        product_s_.clear();
        product_o_.clear();
        while (row < rows.size() && product_rows_.size() < kMorsel) {
            std::size_t n = std::min(matches - match, kMorsel - product_rows_.size());
            product_rows_.insert(product_rows_.end(), n, rows[row]);
            if (s != nullptr) penstock::exec::append(product_s_, s + match, n);
            if (o != nullptr) penstock::exec::append(product_o_, o + match, n);
            match += n;
            if (match == matches) {
                match = 0;
                ++row;
            }
        }
        batch.rows = product_rows_;
        batch.s = s == nullptr ? nullptr : product_s_.data();
        batch.o = o == nullptr ? nullptr : product_o_.data();
        if (!emit(batch)) return false;
    }
    return true;
}

void PatternOperator::sort_by_key(int first, int second) {
    auto all = all_rows();
    order_.assign(all.begin(), all.end());
    auto cell = [this](int column, std::uint32_t row) {
        return column < 0 ? TermId{0} : input_->columns[static_cast<std::size_t>(column)][row];
    };
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
        TermId pa = cell(first, a), pb = cell(first, b);
        return pa != pb ? pa < pb : cell(second, a) < cell(second, b);
    });
}

}  // namespace penstock::exec
