// The neighbours of one vertex under one label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <span>

#include "source.hpp"
#include "stream/record_queue.hpp"

namespace penstock {

/// Values are in the order of their latest occurrence, which is the order of their records; the list stores the record
/// ids next to the values. Edges of a window expire in the same order, so expired values are at the front. Expiry does
/// not touch the list. The next read, or the next addition that needs room, skips the expired values.
///
/// At most two values are stored inline, because three quarters of all vertices have one neighbour. More values are
/// stored in a block. When a value occurs again, its earlier place in the block becomes a hole. A binary search over
/// the ids, which ascend modulo 2^32, finds this place. The list also stores the id of the oldest value. The owner of
/// the list knows the id of the youngest value.
///
/// Trivially copyable, because hash tables move it. The owner must call free() before it discards a list.
class NeighbourList {
public:
    NeighbourList() = default;
    explicit NeighbourList(TermId value) : inline_{kHole, value} {}

    bool in_block() const { return capacity_bits_ != kInlineBits; }
    std::size_t bytes() const { return in_block() ? block_bytes(capacity()) : 0; }  // besides sizeof(*this)

    std::uint32_t size(Held held) {
        if (!in_block()) return 1 + has_two(held);
        leave_old(held);
        return count();
    }
    /// Prefetches the values.
    void prefetch() const {
        if (!in_block()) return;
        __builtin_prefetch(queue_.block + queue_.begin);
        __builtin_prefetch(queue_.block + queue_.end - 1);
    }
    /// Closes the holes first.
    std::span<const TermId> values(Held held) {
        if (!in_block()) return {inline_ + 1 - has_two(held), std::size_t{1} + has_two(held)};
        leave_old(held);
        if (has_holes_) move_to(capacity_bits_);
        return {queue_.block + queue_.begin, queue_.end - queue_.begin};
    }

    /// Adds a value if this needs no block. Otherwise returns false. `youngest`: the record of the present last value.
    bool add_inline(TermId value, RecordId youngest, Held held) {
        if (in_block() || has_two(held)) return false;
        inline_[0] = inline_[1];
        oldest_ = youngest;
        inline_[1] = value;
        return true;
    }
    /// Adds a value if add_inline() returned false.
    void add_to_block(TermId value, RecordId id, RecordId youngest, Held held);
    /// Moves a value to the end. `old`: the record with which the value was added or last refreshed.
    void refresh(TermId value, RecordId old, RecordId id, RecordId youngest, Held held);
    void forget_old_ids(Held held);
    /// Removes all values.
    void free();

private:
    static constexpr std::uint8_t kInlineBits = 1;
    static constexpr std::uint8_t kSmallestBits = 2;  // of a block
    static constexpr std::uint32_t kNear = 8;         // this many values are skipped one by one
    static constexpr TermId kHole = 0;

    /// The block: capacity() values, preceded by as many ids in reverse order, so that the ids of the first values are
    /// next to them.
    struct Queue {
        TermId* block;             // of values
        std::uint32_t begin, end;  // of the entries
    };

    bool has_two(Held held) const { return (inline_[0] != kHole) & held.has(oldest_); }
    std::uint32_t capacity() const { return 1u << capacity_bits_; }
    std::uint32_t count() const;
    auto ids() const { return std::reverse_iterator(reinterpret_cast<RecordId*>(queue_.block)); }
    static TermId* allocate(std::uint32_t capacity) {
        auto* const ids = static_cast<RecordId*>(::operator new(block_bytes(capacity)));
        return reinterpret_cast<TermId*>(ids + capacity);
    }
    static void release(TermId* block, std::uint32_t capacity) {
        ::operator delete(reinterpret_cast<RecordId*>(block) - capacity);
    }
    void leave_old(Held held) {
        if (!held.has(oldest_)) skip_old(held);
    }
    void skip_old(Held held);
    void make_block(RecordId youngest);
    void append(TermId value, RecordId id, Held held);
    void make_room(Held held);
    void move_to(std::uint8_t capacity_bits);
    static std::size_t block_bytes(std::uint32_t capacity) { return capacity * (sizeof(TermId) + sizeof(RecordId)); }

    RecordId oldest_ = 0;  // of two inline values, or of the first value in the block
    std::uint8_t capacity_bits_ = kInlineBits;
    bool has_holes_ = false;  // in the block
    union {
        TermId inline_[2] = {};  // a single value is in the second place
        Queue queue_;
    };
};
static_assert(sizeof(NeighbourList) == 24);

}  // namespace penstock
