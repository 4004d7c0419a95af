#include "expr/counted_values.hpp"

#include <algorithm>

#include "errors.hpp"

namespace penstock::expr {

std::int32_t CountedValues::add(std::uint32_t group, TermId id, std::int32_t by) {
    if (2 * (entries_.size() + 1) > slots_.size()) grow();
    const std::uint64_t hash = this->hash(group, id);
    std::size_t at = place_of(hash);
    for (; slots_[at].number != 0; at = after(at)) {
        if (slots_[at].tag != tag_of(hash)) continue;
        Entry& entry = entries_[slots_[at].number - 1];
        if (entry.id != id || entry.group != group) continue;
        absent_ -= entry.count == 0 ? 1 : 0;
        entry.count += by;
        absent_ += entry.count == 0 ? 1 : 0;
        return entry.count;
    }
    if (first_.size() <= group) first_.resize(group + 1, 0);
    entries_.push_back({id, group, first_[group], by});
    first_[group] = static_cast<std::uint32_t>(entries_.size());
    slots_[at] = {first_[group], tag_of(hash)};
    return by;
}

/// Drops the values that no longer occur, if they are many, or doubles the table.
void CountedValues::grow() {
    if (entries_.size() >= UINT32_MAX / 2) throw LimitError("an aggregate met more than 2^31 different values");
    const std::size_t size = std::max(kFirstSize, slots_.size() * (2 * absent_ > entries_.size() ? 1 : 2));
    std::erase_if(entries_, [](const Entry& entry) { return entry.count == 0; });
    absent_ = 0;
    slots_.assign(size, {});
    std::ranges::fill(first_, 0);
    for (std::uint32_t i = 0; i < entries_.size(); ++i) place(i);
}

void CountedValues::place(std::uint32_t number) {
    Entry& entry = entries_[number];
    const std::uint64_t hash = this->hash(entry.group, entry.id);
    std::size_t at = place_of(hash);
    while (slots_[at].number != 0) at = after(at);
    entry.next = first_[entry.group];
    first_[entry.group] = number + 1;
    slots_[at] = {number + 1, tag_of(hash)};
}

}  // namespace penstock::expr
