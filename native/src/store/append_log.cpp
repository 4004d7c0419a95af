#include "store/append_log.hpp"

#include <algorithm>
#include <utility>

namespace penstock {

AppendLog::AppendLog(std::span<const Append> appends, std::vector<Reassertion> reasserted)
    : reasserted_(std::move(reasserted)) {
    std::sort(reasserted_.begin(), reasserted_.end());
    if (appends.empty()) return;
    slots_.resize(appends.size() + appends.size() / 2 + 1);  // load 2/3
    for (const Append& append : appends) {
        auto slot = first_slot(append.entry, slots_.size());
        while (slots_[slot].entry != 0) slot = slot + 1 == slots_.size() ? 0 : slot + 1;
        slots_[slot] = append;
    }
}

const Append* AppendLog::find(layout::Offset entry) const {
    if (slots_.empty()) return nullptr;
    auto slot = first_slot(entry, slots_.size());
    while (slots_[slot].entry != 0) {
        if (slots_[slot].entry == entry) return &slots_[slot];
        slot = slot + 1 == slots_.size() ? 0 : slot + 1;
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

std::vector<Append> AppendLog::appends() const {
    std::vector<Append> used;
    for (const Append& slot : slots_)
        if (slot.entry != 0) used.push_back(slot);
    return used;
}

}  // namespace penstock
