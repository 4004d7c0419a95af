#include "expr/memory.hpp"

namespace penstock::expr {

const Value* ValueCache::find(TermId id) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t at = slot(id);; at = (at + 1) & (slots_.size() - 1)) {
        if (slots_[at].id == id) return &slots_[at].value;
        if (slots_[at].id == kUnbound) return nullptr;
    }
}

void ValueCache::insert(TermId id, const Value& value) {
    if (2 * (used_ + 1) > slots_.size()) rehash(slots_.empty() ? kFirstSize : slots_.size() * 2);
    std::size_t at = slot(id);
    while (slots_[at].id != kUnbound) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {id, value};
    ++used_;
}

void ValueCache::rehash(std::size_t size) {
    const std::vector<Slot> old = std::move(slots_);
    used_ = 0;
    slots_ = std::vector<Slot>(size > kMaxSize ? kMaxSize : size);
    if (size > kMaxSize) return;
    for (const Slot& entry : old)
        if (entry.id != kUnbound) insert(entry.id, entry.value);
}

const TermId* ForeignMemo::find(std::string_view key) const {
    const auto found = results_.find(key);
    return found == results_.end() ? nullptr : &found->second;
}

void ForeignMemo::insert(std::string_view key, TermId result) {
    if (results_.size() >= kMaxEntries) results_.clear();
    results_.emplace(key, result);
}

std::uint64_t Random::next() {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

std::uint32_t BlankKeys::key(std::string_view text) {
    const auto [found, added] = numbers_.emplace(text, static_cast<std::uint32_t>(numbers_.size()));
    if (added) bytes_ += kEntryBytes + text.size();
    return found->second;
}

ColumnPool::Values ColumnPool::take() {
    if (free_.empty()) return std::make_unique<Value[]>(kChunk);
    Values column = std::move(free_.back());
    free_.pop_back();
    return column;
}

}  // namespace penstock::expr
