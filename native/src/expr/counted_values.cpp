#include "expr/counted_values.hpp"

#include <algorithm>

#include "errors.hpp"

namespace penstock::expr {

std::uint64_t CountedValues::hash(std::uint32_t group, TermId id) {
    std::uint64_t out = (id ^ (group * 0x9E3779B97F4A7C15ull)) * 0xFF51AFD7ED558CCDull;
    out ^= out >> 32;
    return out * 0xC4CEB9FE1A85EC53ull >> 20;
}

std::int32_t CountedValues::add(std::uint32_t group, TermId id, std::int32_t by) {
    if (2 * (entries_.size() + 1) > slots_.size()) grow();
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(group, id) & mask;
    for (; slots_[at] != 0; at = (at + 1) & mask) {
        Entry& entry = entries_[slots_[at] - 1];
        if (entry.id != id || entry.group != group) continue;
        absent_ -= entry.count == 0 ? 1 : 0;
        entry.count += by;
        absent_ += entry.count == 0 ? 1 : 0;
        return entry.count;
    }
    if (first_.size() <= group) first_.resize(group + 1, 0);
    entries_.push_back({id, group, first_[group], by});
    slots_[at] = first_[group] = static_cast<std::uint32_t>(entries_.size());
    return by;
}

/// Drops the values that no longer occur, if they are many, or doubles the table.
void CountedValues::grow() {
    if (entries_.size() >= UINT32_MAX / 2) throw LimitError("an aggregate met more than 2^31 different values");
    const std::size_t size = std::max(kFirstSize, slots_.size() * (2 * absent_ > entries_.size() ? 1 : 2));
    std::erase_if(entries_, [](const Entry& entry) { return entry.count == 0; });
    absent_ = 0;
    slots_.assign(size, 0);
    std::ranges::fill(first_, 0);
    for (std::uint32_t i = 0; i < entries_.size(); ++i) place(i);
}

void CountedValues::place(std::uint32_t number) {
    Entry& entry = entries_[number];
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(entry.group, entry.id) & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    entry.next = first_[entry.group];
    slots_[at] = first_[entry.group] = number + 1;
}

}  // namespace penstock::expr
