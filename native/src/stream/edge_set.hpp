// The distinct edges of a window: hash of (subject, label, object) -> the latest record of that edge.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stream/record_queue.hpp"

namespace penstock {

/// Linear probing over 8-byte slots. A slot holds half of the edge's hash, which is enough to move slots about without
/// looking at records, and to look at hardly any wrong one.
class EdgeSet {
public:
    static std::uint32_t tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32) | 1; }

    std::size_t size() const { return size_; }
    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

    void prefetch(std::uint32_t tag) const {
        if (!slots_.empty()) __builtin_prefetch(&slots_[home(tag)]);
    }

    /// The record under that tag for which same(record) holds, or nullptr. A younger one may be written through the
    /// pointer.
    template <class Same>
    RecordId* find(std::uint32_t tag, Same&& same) {
        if (slots_.empty()) return nullptr;
        for (std::size_t at = home(tag); slots_[at].tag != 0; at = (at + 1) & mask()) {
            if (slots_[at].tag == tag && same(slots_[at].record)) return &slots_[at].record;
        }
        return nullptr;
    }

    /// The edge must not be there yet.
    void insert(std::uint32_t tag, RecordId record) {
        if ((size_ + 1) * kLoadOf > slots_.size() * kLoad) resize(slots_.empty() ? kSmallest : 2 * slots_.size());
        put({tag, record});
        ++size_;
    }

    void erase(std::uint32_t tag, RecordId record) {
        std::size_t hole = home(tag);
        while (slots_[hole].record != record || slots_[hole].tag != tag) hole = (hole + 1) & mask();
        // Backward shift: slots behind the hole move up unless that would put them before their home.
        for (std::size_t at = (hole + 1) & mask(); slots_[at].tag != 0; at = (at + 1) & mask()) {
            if (((at - home(slots_[at].tag)) & mask()) < ((at - hole) & mask())) continue;
            slots_[hole] = slots_[at];
            hole = at;
        }
        slots_[hole] = {};
        --size_;
        if (size_ * kSparse < slots_.size() && slots_.size() > kSmallest) resize(slots_.size() / 2);
    }

    /// Room for so many edges.
    void reserve(std::size_t edges) {
        const std::size_t slots = std::bit_ceil(edges * kLoadOf / kLoad + 1);
        if (slots > slots_.size() && slots > kSmallest) resize(slots);
    }

    void clear() {
        std::vector<Slot>().swap(slots_);
        size_ = 0;
    }

private:
    static constexpr std::size_t kSmallest = 16;
    static constexpr std::size_t kLoad = 7, kLoadOf = 10;  // grows above 7/10
    static constexpr std::size_t kSparse = 8;              // shrinks below 1/8

    struct Slot {
        std::uint32_t tag = 0;  // 0 = free
        RecordId record = 0;
    };

    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t home(std::uint32_t tag) const { return tag >> shift_; }

    void put(Slot slot) {
        std::size_t at = home(slot.tag);
        while (slots_[at].tag != 0) at = (at + 1) & mask();
        slots_[at] = slot;
    }

    void resize(std::size_t slots) {
        std::vector<Slot> old(slots);
        old.swap(slots_);
        shift_ = 32 - std::countr_zero(slots);
        for (const Slot& slot : old) {
            if (slot.tag != 0) put(slot);
        }
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
    int shift_ = 32;
};

}  // namespace penstock
