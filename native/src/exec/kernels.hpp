// Loops over columns.
#pragma once

#include <cstdint>
#include <ranges>
#include <span>

#include "exec/table.hpp"

namespace penstock::exec {

inline std::uint64_t mix(std::uint64_t x) {
    __extension__ using Wide = unsigned __int128;
    Wide m = static_cast<Wide>(x ^ 0x9E3779B97F4A7C15ull) * 0xD6E8FEB86659FD93ull;
    return static_cast<std::uint64_t>(m) ^ static_cast<std::uint64_t>(m >> 64);
}
inline std::uint64_t combine(std::uint64_t hash, TermId id) {
    return mix(hash + 0x632BE59BD9B4E019ull + id * 0xFF51AFD7ED558CCDull);
}

/// Appends `from[rows[i]]` to `out`, for each i.
inline void gather(const Column& from, std::span<const std::uint32_t> rows, Column& out) {
    // Inserts the values directly, because a resize would first write zeros.
    const auto values = std::views::transform(rows, [&](std::uint32_t row) -> const TermId& { return from[row]; });
    out.insert(out.end(), values.begin(), values.end());
}
inline void append(Column& out, const TermId* values, std::size_t n) { out.insert(out.end(), values, values + n); }
inline void append_same(Column& out, TermId value, std::size_t n) { out.insert(out.end(), n, value); }

/// Removes all rows whose flag is not set. The order of the other rows is unchanged.
inline void compact(Table& table, std::span<const std::uint8_t> keep) {
    std::size_t remaining = 0;
    for (std::size_t i = 0; i < table.rows; ++i) remaining += keep[i] != 0;
    if (remaining == table.rows) return;
    for (Column& column : table.columns) {
        std::size_t to = 0;
        for (std::size_t i = 0; i < table.rows; ++i) {
            column[to] = column[i];
            to += keep[i] != 0;
        }
        column.resize(remaining);
    }
    table.rows = remaining;
}

}  // namespace penstock::exec
