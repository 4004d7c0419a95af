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

std::int32_t RowCounts::add(std::span<const TermId> row, std::uint64_t hash, std::int32_t by) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    std::size_t at = place_of(hash);
    for (; slots_[at].number != 0; at = after(at)) {
        if (slots_[at].tag != tag_of(hash) || !std::ranges::equal(row, this->row(slots_[at].number - 1))) continue;
        TermId& count = this->count(slots_[at].number - 1);
        absent_ -= count == 0 ? 1 : 0;
        count += static_cast<TermId>(std::int64_t{by});
        absent_ += count == 0 ? 1 : 0;
        return static_cast<std::int32_t>(count);
    }
    cells_.insert(cells_.end(), row.begin(), row.end());
    cells_.push_back(static_cast<TermId>(std::int64_t{by}));
    slots_[at] = {static_cast<std::uint32_t>(++size_), tag_of(hash)};
    return by;
}

/// Drops the rows that no longer occur, if they are many, or doubles the table.
void RowCounts::grow() {
    if (size_ >= UINT32_MAX / 2) throw LimitError("DISTINCT of an aggregate met more than 2^31 different rows");
    const std::size_t size = std::max(kFirstSize, slots_.size() * (2 * absent_ > size_ ? 1 : 2));
    slots_.assign(size, {});
    std::size_t left = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        if (count(i) == 0) continue;
        std::copy_n(cells_.begin() + static_cast<std::ptrdiff_t>(i * stride_), stride_,
                    cells_.begin() + static_cast<std::ptrdiff_t>(left * stride_));
        const std::uint64_t hash = hash_of(row(left));
        std::size_t at = place_of(hash);
        while (slots_[at].number != 0) at = after(at);
        slots_[at] = {static_cast<std::uint32_t>(++left), tag_of(hash)};
    }
    cells_.resize(left * stride_);
    size_ = left;
    absent_ = 0;
}

}  // namespace penstock::expr
