// A whole result in memory: hash sides, inputs of ORDER BY, the answer.
#pragma once

#include "exec/charge.hpp"
#include "exec/key_table.hpp"
#include "exec/operator.hpp"

namespace penstock::exec {

/// Collects the rows pushed into it. Charges memory before it allocates.
class Collected final : public Sink {
public:
    /// Clears it and sets the schema of the rows to come.
    void begin(Run& run, const Schema& schema);
    bool consume(Table& rows) override;
    const Table& table() const { return table_; }
    Table& table() { return table_; }
    /// Clears it, releases the charge and frees large buffers.
    void release(Budget& budget);
    /// Moves the table out. Its charge stays with the run, which has ended.
    Table take();

private:
    void reserve(std::size_t rows);
    void take_first(Table& rows);
    Run* run_ = nullptr;
    Table table_;
    std::size_t capacity_ = 0;
    Charge charge_;
};

/// Pushes a table in morsels. `buffer` is scratch of the caller; it gets the table's slots. Returns false if the
/// consumer wants no more rows.
bool push_all(const Table& table, Table& buffer, Run& run, Sink& out);
/// The same for the rows listed in `order`.
bool push_rows(const Table& table, std::span<const std::uint32_t> order, Table& buffer, Run& run, Sink& out);
/// The same for the keys listed in `order`. `buffer` has the slots of the keys.
bool push_keys(const KeyTable& keys, std::span<const std::uint32_t> order, Table& buffer, Run& run, Sink& out);

}  // namespace penstock::exec
