#include "exec/counted_rows.hpp"

#include <algorithm>
#include <bit>

#include "errors.hpp"
#include "exec/charge.hpp"
#include "exec/kernels.hpp"

namespace penstock::exec {

std::int64_t CountedRows::total() const {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < size(); ++i) total += count(i);
    return total;
}

void CountedRows::sum(Budget& budget) {
    constexpr std::size_t kMost = std::size_t{1} << 31;
    const std::size_t n = size();
    if (n >= kMost) throw LimitError("ORDER BY met more than 2^31 rows");
    budget.check();
    const std::size_t buckets = std::bit_ceil(std::max<std::size_t>(2 * n, 64));
    ScopedCharge charge(budget);
    charge.set(buckets * sizeof(std::uint32_t));
    std::vector<std::uint32_t> numbers(buckets, 0);  // of a distinct row, plus 1; 0 = free
    std::size_t distinct = 0;
    const auto width = static_cast<std::ptrdiff_t>(this->width());
    for (std::size_t i = 0; i < n; ++i) {
        const TermId* from = row(i);
        std::uint64_t hash = 0;
        for (std::ptrdiff_t c = 0; c < width; ++c) hash = combine(hash, from[c]);
        std::size_t at = hash & (buckets - 1);
        while (numbers[at] != 0 && !std::equal(from, from + width, row(numbers[at] - 1))) at = (at + 1) & (buckets - 1);
        if (numbers[at] != 0) {
            cells_[(numbers[at] - 1) * stride_ + this->width()] += from[width];  // modulo 2^64
            continue;
        }
        if (distinct != i) std::copy_n(from, stride_, cells_.data() + distinct * stride_);
        numbers[at] = static_cast<std::uint32_t>(++distinct);
    }
    std::size_t left = 0;
    for (std::size_t i = 0; i < distinct; ++i) {
        if (count(i) == 0) continue;
        if (left != i) std::copy_n(row(i), stride_, cells_.data() + left * stride_);
        ++left;
    }
    truncate(left);
    if (cells_.capacity() > 4 * cells_.size() + 1024) cells_.shrink_to_fit();
}

}  // namespace penstock::exec
