#include "exec/rows.hpp"

#include <algorithm>
#include <numeric>

#include "exec/kernels.hpp"
#include "exec/key_table.hpp"

namespace penstock::exec {

namespace {

/// Positions of the rows in the order of `keys`. Uses counting sort if the values are dense, as members are.
std::vector<std::uint32_t> stable_order(const Column& keys) {
    std::vector<std::uint32_t> order(keys.size());
    auto [least, greatest] = std::minmax_element(keys.begin(), keys.end());
    TermId base = *least, range = *greatest - *least;
    if (range > 4 * keys.size() + 1024) {
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
        return order;
    }
    std::vector<std::uint32_t> next(range + 2, 0);
    for (TermId key : keys) ++next[key - base + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::uint32_t i = 0; i < keys.size(); ++i) order[next[keys[i] - base]++] = i;
    return order;
}

std::vector<const TermId*> pointers(std::span<const std::span<const TermId>> columns) {
    std::vector<const TermId*> data;
    for (const auto& column : columns) data.push_back(column.data());
    return data;
}

}  // namespace

void sort_by(Table& table, std::size_t column) {
    const Column& keys = table.columns[column];
    if (std::is_sorted(keys.begin(), keys.end())) return;
    std::vector<std::uint32_t> order = stable_order(keys);
    Column sorted;
    for (Column& values : table.columns) {
        sorted.clear();
        gather(values, order, sorted);
        std::swap(values, sorted);
    }
}

std::vector<std::int64_t> multiset_difference(std::span<const std::span<const TermId>> a, std::size_t a_rows,
                                              std::span<const std::span<const TermId>> b, std::size_t b_rows) {
    Budget unlimited;
    KeyTable distinct;
    distinct.reset(a.size());
    std::vector<std::uint32_t> ids(std::max(a_rows, b_rows));
    distinct.assign(pointers(b), b_rows, ids.data(), unlimited);
    std::vector<std::uint32_t> taken(distinct.size(), 0);
    for (std::size_t i = 0; i < b_rows; ++i) ++taken[ids[i]];
    distinct.assign(pointers(a), a_rows, ids.data(), unlimited);
    std::vector<std::int64_t> remaining;
    for (std::size_t i = 0; i < a_rows; ++i) {
        if (ids[i] < taken.size() && taken[ids[i]] != 0)
            --taken[ids[i]];
        else
            remaining.push_back(static_cast<std::int64_t>(i));
    }
    return remaining;
}

}  // namespace penstock::exec
