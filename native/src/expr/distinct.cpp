#include "expr/distinct.hpp"

#include <algorithm>

#include "errors.hpp"

namespace penstock::expr {

std::uint64_t hash_of(std::span<const TermId> row) {
    std::uint64_t out = 0x9E3779B97F4A7C15ull;
    for (const TermId id : row) {
        out = (out ^ id) * 0xFF51AFD7ED558CCDull;
        out ^= out >> 32;
    }
    return out;
}

bool RowSet::insert(std::span<const TermId> row) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash_of(row) & mask;; at = (at + 1) & mask) {
        if (slots_[at] == 0) {
            rows_.insert(rows_.end(), row.begin(), row.end());
            slots_[at] = static_cast<std::uint32_t>(++used_);
            return true;
        }
        const TermId* existing = rows_.data() + (slots_[at] - 1) * width_;
        if (std::equal(row.begin(), row.end(), existing)) return false;
    }
}

void RowSet::grow() {
    if (used_ >= UINT32_MAX / 2) throw LimitError("DISTINCT of an aggregate met more than 2^31 different rows");
    slots_.assign(slots_.empty() ? kFirstSize : slots_.size() * 2, 0);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = 0; i < used_; ++i) {
        std::size_t at = hash_of({rows_.data() + i * width_, width_}) & mask;
        while (slots_[at] != 0) at = (at + 1) & mask;
        slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
}

std::int32_t RowCounts::add(std::span<const TermId> row, std::int32_t by) {
    if (2 * (counts_.size() + 1) > slots_.size()) grow();
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash_of(row) & mask;
    for (; slots_[at] != 0; at = (at + 1) & mask) {
        if (!std::ranges::equal(row, this->row(slots_[at] - 1))) continue;
        std::int32_t& count = counts_[slots_[at] - 1];
        absent_ -= count == 0 ? 1 : 0;
        count += by;
        absent_ += count == 0 ? 1 : 0;
        return count;
    }
    rows_.insert(rows_.end(), row.begin(), row.end());
    counts_.push_back(by);
    slots_[at] = static_cast<std::uint32_t>(counts_.size());
    return by;
}

/// Drops the rows that no longer occur, if they are many, or doubles the table.
void RowCounts::grow() {
    if (counts_.size() >= UINT32_MAX / 2)
        throw LimitError("DISTINCT of an aggregate met more than 2^31 different rows");
    const std::size_t size = std::max(kFirstSize, slots_.size() * (2 * absent_ > counts_.size() ? 1 : 2));
    slots_.assign(size, 0);
    std::size_t left = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        if (counts_[i] == 0) continue;
        std::copy_n(rows_.begin() + static_cast<std::ptrdiff_t>(i * width_), width_,
                    rows_.begin() + static_cast<std::ptrdiff_t>(left * width_));
        counts_[left] = counts_[i];
        std::size_t at = hash_of(row(left)) & (size - 1);
        while (slots_[at] != 0) at = (at + 1) & (size - 1);
        slots_[at] = static_cast<std::uint32_t>(++left);
    }
    rows_.resize(left * width_);
    counts_.resize(left);
    absent_ = 0;
}

}  // namespace penstock::expr
