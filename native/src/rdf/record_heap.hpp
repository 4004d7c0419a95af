// Memory for term records: arenas divided into blocks, with a free list per size. A permanent record needs no header,
// and a transient record can be freed separately. Freed small records return to the heap, not to the system, so that a
// stream with an unbounded number of terms reuses their memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace penstock {

/// Not thread-safe: its owner's lock guards it.
class RecordHeap {
public:
    /// Arenas grow from `first_arena_bytes`, doubling up to 1 MiB.
    explicit RecordHeap(std::size_t first_arena_bytes) : next_arena_bytes_(first_arena_bytes) {}
    RecordHeap(const RecordHeap&) = delete;
    RecordHeap& operator=(const RecordHeap&) = delete;
    ~RecordHeap() {
        for (Large* block = large_.next; block != &large_;) {
            Large* next = block->next;
            ::operator delete(block);
            block = next;
        }
    }

    /// 8-aligned memory.
    void* allocate(std::size_t bytes) {
        const std::size_t size = rounded(bytes);
        used_ += size;
        if (size > kLargestBlock) return allocate_large(size);
        Block*& head = free_[size / kGrain];
        if (head != nullptr) {
            Block* block = head;
            head = block->next;
            return block;
        }
        if (size > left_) open_arena();
        char* block = at_;
        at_ += size;
        left_ -= size;
        return block;
    }
    void release(void* memory, std::size_t bytes) {
        const std::size_t size = rounded(bytes);
        used_ -= size;
        if (size > kLargestBlock) {
            release_large(memory, size);
            return;
        }
        free_[size / kGrain] = new (memory) Block{free_[size / kGrain]};
    }
    std::size_t bytes() const { return arena_bytes_ + large_bytes_; }
    /// The bytes of it that are currently allocated.
    std::size_t used() const { return used_; }

private:
    struct Block {
        Block* next;
    };
    struct Large {  // header of a separate allocation, in a ring with its anchor
        Large* next;
        Large* previous;
    };
    static constexpr std::size_t kGrain = 8;
    static constexpr std::size_t kLargestBlock = 512;  // larger records are separate allocations
    static constexpr std::size_t kLargestArena = std::size_t{1} << 20;

    static std::size_t rounded(std::size_t bytes) { return (bytes + kGrain - 1) & ~(kGrain - 1); }
    void* allocate_large(std::size_t size) {
        auto* block = static_cast<Large*>(::operator new(sizeof(Large) + size));
        block->next = large_.next;
        block->previous = &large_;
        large_.next->previous = block;
        large_.next = block;
        large_bytes_ += size;
        return block + 1;
    }
    void release_large(void* memory, std::size_t size) {
        Large* block = static_cast<Large*>(memory) - 1;
        block->previous->next = block->next;
        block->next->previous = block->previous;
        large_bytes_ -= size;
        ::operator delete(block);
    }
    void open_arena() {
        // The rest of the old arena becomes a block of its size.
        if (left_ >= kGrain) {
            used_ += rounded(left_);
            release(at_, left_);
        }
        arenas_.push_back(std::make_unique_for_overwrite<char[]>(next_arena_bytes_));
        at_ = arenas_.back().get();
        left_ = next_arena_bytes_;
        arena_bytes_ += next_arena_bytes_;
        if (next_arena_bytes_ < kLargestArena) next_arena_bytes_ *= 2;
    }

    std::array<Block*, kLargestBlock / kGrain + 1> free_{};
    std::vector<std::unique_ptr<char[]>> arenas_;
    char* at_ = nullptr;
    std::size_t left_ = 0;
    Large large_{&large_, &large_};
    std::size_t next_arena_bytes_;
    std::size_t arena_bytes_ = 0;
    std::size_t large_bytes_ = 0;
    std::size_t used_ = 0;
};

}  // namespace penstock
