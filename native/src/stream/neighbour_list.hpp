// The neighbours of one vertex under one label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "source.hpp"

namespace penstock {

/// Values are in the order in which they came, or last came again. Edges of a window leave in that order too, so the
/// one to be removed is at the front, however long the list.
///
/// Up to two values are here (three quarters of all vertices have one neighbour, NOTES.md), up to kShort in a block
/// that is searched value by value. A longer list is a queue within its block: one that comes again leaves a hole
/// there, and is found by bisection over ids, which ascend (modulo 2^32).
///
/// Trivially copyable, as hash tables move it; whoever drops it calls free() first.
class NeighbourList {
public:
    std::uint32_t size() const { return count_; }
    std::size_t bytes() const { return block_bytes(capacity_); }  // outside of this object
    void prefetch() const;

    /// Closes the holes first.
    std::span<const TermId> values() {
        if (capacity_ <= kShort) return {data(), count_};
        if (queue_.end - queue_.begin != count_) close_holes();
        return {queue_.block + queue_.begin, count_};
    }

    void add(TermId value, std::uint32_t id) {
        if (capacity_ == kInline && count_ < kInline)
            inline_[count_++] = value;
        else
            add_to_block(value, id);
    }
    void remove(TermId value) {
        if (capacity_ != kInline) return remove_from_block(value);
        if (inline_[0] == value) inline_[0] = inline_[1];
        --count_;
    }
    /// The value that was added, or refreshed last, with id `before`.
    void refresh(TermId value, std::uint32_t before, std::uint32_t id);
    void free();

private:
    static constexpr std::uint32_t kInline = 2;
    static constexpr std::uint32_t kShort = 32;
    static constexpr TermId kHole = 0;

    /// `capacity_` values and, in a long list, as many ids behind them.
    struct Queue {
        TermId* block;
        std::uint32_t begin, end;  // in a long list: of the entries; the first is no hole
    };

    TermId* data() { return capacity_ == kInline ? inline_ : queue_.block; }
    std::uint32_t* ids() const { return reinterpret_cast<std::uint32_t*>(queue_.block + capacity_); }
    void add_to_block(TermId value, std::uint32_t id);
    void remove_from_block(TermId value);
    void remove_at(std::uint32_t place);
    void make_room(std::uint32_t id);
    void close_holes();
    void resize(std::uint32_t capacity, std::uint32_t older);
    static std::size_t block_bytes(std::uint32_t capacity) {
        if (capacity == kInline) return 0;
        return capacity * (sizeof(TermId) + (capacity > kShort ? sizeof(std::uint32_t) : 0));
    }

    std::uint32_t count_ = 0;
    std::uint32_t capacity_ = kInline;
    union {
        TermId inline_[kInline] = {};
        Queue queue_;
    };
};
static_assert(sizeof(NeighbourList) == 24);

}  // namespace penstock
