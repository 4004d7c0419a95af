#include "expr/distinct.hpp"

#include <algorithm>

#include "errors.hpp"

namespace penstock::expr {

std::uint64_t RowSet::hash(std::span<const TermId> row) {
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
    for (std::size_t at = hash(row) & mask;; at = (at + 1) & mask) {
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
        std::size_t at = hash({rows_.data() + i * width_, width_}) & mask;
        while (slots_[at] != 0) at = (at + 1) & mask;
        slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
}

}  // namespace penstock::expr
