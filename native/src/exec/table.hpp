// The binding table: columns of term ids, one per variable slot of the plan (ADR 8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rdf/term.hpp"

namespace penstock {

using Slot = std::uint16_t;  // index of a variable in its plan; hidden variables (member, row numbers) have slots too
using Column = std::vector<TermId>;

/// Rows of bindings. `slots[i]` names the variable of `columns[i]`; kUnbound marks a variable without a value.
/// A table without columns still has a row count (the unit table has one row and no columns).
struct Table {
    std::vector<Slot> slots;
    std::vector<Column> columns;
    std::size_t rows = 0;

    int index_of(Slot slot) const {
        for (std::size_t i = 0; i < slots.size(); ++i)
            if (slots[i] == slot) return static_cast<int>(i);
        return -1;
    }
    const Column* find(Slot slot) const {
        int i = index_of(slot);
        return i < 0 ? nullptr : &columns[static_cast<std::size_t>(i)];
    }
};

/// The rows of a run. Another run can return the same table again. It is therefore allowed to modify the table only if
/// the table has no other owner.
using Answer = std::shared_ptr<Table>;

}  // namespace penstock
