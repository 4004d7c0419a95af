#include "exec/collected.hpp"

#include <algorithm>

#include "exec/kernels.hpp"

namespace penstock::exec {

namespace {
constexpr std::size_t kSmallRows = 4096;  // larger buffers are freed after a run

/// Pushes the rows listed in `order`. column(c): all values of a column.
template <class ColumnAt>
bool push_listed(ColumnAt column, std::span<const std::uint32_t> order, Table& buffer, Run& run, Sink& out) {
    for (std::size_t from = 0; from < order.size(); from += kMorsel) {
        const auto rows = order.subspan(from, std::min(kMorsel, order.size() - from));
        for (std::size_t c = 0; c < buffer.columns.size(); ++c) {
            buffer.columns[c].clear();
            gather(column(c), rows, buffer.columns[c]);
        }
        buffer.rows = rows.size();
        run.work(rows.size());
        if (!out.push(buffer)) return false;
    }
    return true;
}
}  // namespace

void Collected::begin(Run& run, const Schema& schema) {
    run_ = &run;
    schema.shape(table_);
    capacity_ = table_.columns.empty() ? 0 : table_.columns[0].capacity();
    for (const Column& column : table_.columns) capacity_ = std::min(capacity_, column.capacity());
}

void Collected::reserve(std::size_t rows) {
    if (rows <= capacity_) return;
    if (rows >= 0xFFFFFFFF) throw LimitError("a table of the evaluation exceeds 2^32 rows");
    std::size_t grown = capacity_ == 0 ? rows : std::max(rows, capacity_ * 2);
    charge_.set(run_->budget(), grown * sizeof(TermId) * table_.columns.size());
    for (Column& column : table_.columns) column.reserve(grown);
    capacity_ = grown;
}

/// Swaps the columns in, except for those that are far larger than their content.
void Collected::take_first(Table& rows) {
    charge_.set(run_->budget(), rows.rows * sizeof(TermId) * table_.columns.size());
    capacity_ = rows.rows;
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
        if (rows.columns[c].capacity() <= 2 * rows.rows)
            std::swap(table_.columns[c], rows.columns[c]);
        else
            table_.columns[c] = rows.columns[c];
    }
    table_.rows = rows.rows;
}

bool Collected::consume(Table& rows) {
    run_->work(rows.rows);
    if (table_.rows == 0 && rows.rows > capacity_) {
        take_first(rows);
        return true;
    }
    reserve(table_.rows + rows.rows);
    for (std::size_t c = 0; c < table_.columns.size(); ++c)
        append(table_.columns[c], rows.columns[c].data(), rows.rows);
    table_.rows += rows.rows;
    return true;
}

void Collected::release(Budget& budget) {
    for (Column& column : table_.columns) {
        if (column.capacity() > kSmallRows) column = Column();
        column.clear();
    }
    table_.rows = 0;
    charge_.release(budget);
}

Table Collected::take() {
    capacity_ = 0;
    Table result = std::move(table_);
    table_ = Table();
    return result;
}

bool push_all(const Table& table, Table& buffer, Run& run, Sink& out) {
    if (buffer.slots != table.slots) buffer.slots = table.slots;
    buffer.columns.resize(table.columns.size());
    for (std::size_t from = 0; from < table.rows; from += kMorsel) {
        std::size_t n = std::min(kMorsel, table.rows - from);
        for (std::size_t c = 0; c < table.columns.size(); ++c)
            buffer.columns[c].assign(table.columns[c].begin() + static_cast<std::ptrdiff_t>(from),
                                     table.columns[c].begin() + static_cast<std::ptrdiff_t>(from + n));
        buffer.rows = n;
        run.work(n);
        if (!out.push(buffer)) return false;
    }
    return true;
}

bool push_rows(const Table& table, std::span<const std::uint32_t> order, Table& buffer, Run& run, Sink& out) {
    buffer.slots = table.slots;
    buffer.columns.resize(table.columns.size());
    return push_listed([&](std::size_t c) -> const Column& { return table.columns[c]; }, order, buffer, run, out);
}

bool push_keys(const KeyTable& keys, std::span<const std::uint32_t> order, Table& buffer, Run& run, Sink& out) {
    return push_listed([&](std::size_t c) -> const Column& { return keys.column(c); }, order, buffer, run, out);
}

}  // namespace penstock::exec
