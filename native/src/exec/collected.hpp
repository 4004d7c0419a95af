// A complete result in memory, for example the build side of a hash join, the input of ORDER BY, or the answer.
#pragma once

#include "exec/charge.hpp"
#include "exec/key_table.hpp"
#include "exec/operator.hpp"

namespace penstock::exec {

/// Collects the rows pushed into it. Charges memory before it allocates.
class Collected final : public Sink {
public:
    /// Clears the table and sets the schema of the following rows.
    void begin(Run& run, const Schema& schema);
    bool consume(Table& rows) override;
    const Table& table() const { return table_; }
    Table& table() { return table_; }
    /// Clears the table, releases the charge and frees large buffers.
    void release(Budget& budget);
    /// Moves the table out. The charge of the table stays with the run, which has ended.
    Table take();

private:
    void reserve(std::size_t rows);
    void take_first(Table& rows);
    Run* run_ = nullptr;
    Table table_;
    std::size_t capacity_ = 0;
    Charge charge_;
};

/// Pushes a table in morsels. `buffer` is a scratch table of the caller, which gets the slots of the table. Returns
/// false if the consumer needs no more rows.
bool push_all(const Table& table, Table& buffer, Run& run, Sink& out);
/// The same for the rows listed in `order`.
bool push_rows(const Table& table, std::span<const std::uint32_t> order, Table& buffer, Run& run, Sink& out);
/// The same for the keys listed in `order`. `buffer` has the slots of the keys.
bool push_keys(const KeyTable& keys, std::span<const std::uint32_t> order, Table& buffer, Run& run, Sink& out);

}  // namespace penstock::exec
