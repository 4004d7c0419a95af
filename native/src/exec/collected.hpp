// A whole result in memory: hash sides, inputs of ORDER BY, the answer itself.
#pragma once

#include "exec/charge.hpp"
#include "exec/operator.hpp"

namespace penstock::exec {

/// Collects what is pushed into it. Its memory is charged before it is taken.
class Collected final : public Sink {
public:
    /// Empties it for rows of that schema.
    void begin(Run& run, const Schema& schema);
    bool consume(Table& rows) override;
    const Table& table() const { return table_; }
    Table& table() { return table_; }
    /// Empties it, gives the charge back and frees what is large.
    void release(Budget& budget);
    /// Gives the table away; its charge stays with the run, which is over.
    Table take();

private:
    void reserve(std::size_t rows);
    void take_first(Table& rows);
    Run* run_ = nullptr;
    Table table_;
    std::size_t capacity_ = 0;
    Charge charge_;
};

/// Pushes a table in morsels; `buffer` is the caller's and gets the table's slots. False where the consumer has enough.
bool push_all(const Table& table, Table& buffer, Run& run, Sink& out);
/// The same for the rows listed in `order`.
bool push_rows(const Table& table, std::span<const std::uint32_t> order, Table& buffer, Run& run, Sink& out);

}  // namespace penstock::exec
