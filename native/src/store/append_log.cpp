#include "store/append_log.hpp"

#include <algorithm>
#include <utility>

namespace penstock {

AppendLog::AppendLog(std::vector<Append> appends, std::vector<Reassertion> reasserted)
    : appends_(std::move(appends)), reasserted_(std::move(reasserted)) {
    std::sort(reasserted_.begin(), reasserted_.end());
}

std::size_t AppendLog::bytes() const {
    return (appends_.capacity() + slots_for(appends_.size())) * sizeof(Append) +
           reasserted_.capacity() * sizeof(Reassertion);
}

std::vector<Append> AppendLog::make_slots() const {
    std::vector<Append> slots(slots_for(appends_.size()));  // load factor 2/3
    for (const Append& append : appends_) {
        auto slot = first_slot(append.entry, slots.size());
        while (slots[slot].entry != 0) slot = slot + 1 == slots.size() ? 0 : slot + 1;
        slots[slot] = append;
    }
    return slots;
}

std::span<const Append> AppendLog::slots() const {
    std::call_once(hash_->made, [this] { hash_->slots = make_slots(); });
    return hash_->slots;
}

const Append* AppendLog::find(layout::Offset entry) const {
    const std::span<const Append> slots = this->slots();
    if (slots.empty()) return nullptr;
    auto slot = first_slot(entry, slots.size());
    while (slots[slot].entry != 0) {
        if (slots[slot].entry == entry) return &slots[slot];
        slot = slot + 1 == slots.size() ? 0 : slot + 1;
    }
    return nullptr;
}

std::span<const Reassertion> AppendLog::reasserted(layout::Offset entry) const {
    if (reasserted_.empty()) return {};
    const auto begin = std::lower_bound(reasserted_.begin(), reasserted_.end(), Reassertion{entry, 0});
    auto end = begin;
    while (end != reasserted_.end() && end->entry == entry) ++end;
    return {begin, end};
}

}  // namespace penstock
