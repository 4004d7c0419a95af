// Memory for the texts that one call of an expression computes.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace penstock::expr {

/// Bump allocator. Allocations are valid until reset(), which retains the first block for reuse.
class Arena {
public:
    char* allocate(std::size_t bytes) {
        if (bytes > left_) grow(bytes);
        char* out = next_;
        next_ += bytes;
        left_ -= bytes;
        return out;
    }
    void reset() {
        if (blocks_.size() > 1) blocks_.resize(1);
        next_ = blocks_.empty() ? nullptr : blocks_[0].data.get();
        left_ = blocks_.empty() ? 0 : blocks_[0].size;
        bytes_ = left_;
    }
    std::size_t left() const { return left_; }
    std::size_t bytes() const { return bytes_; }

private:
    static constexpr std::size_t kBlock = 4096;
    struct Block {
        std::unique_ptr<char[]> data;
        std::size_t size;
    };
    void grow(std::size_t bytes) {
        const std::size_t size = bytes > kBlock ? bytes : kBlock;
        blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
        next_ = blocks_.back().data.get();
        left_ = size;
        bytes_ += size;
    }
    std::vector<Block> blocks_;
    char* next_ = nullptr;
    std::size_t left_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace penstock::expr
