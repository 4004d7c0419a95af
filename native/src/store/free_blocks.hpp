// Small free blocks of a region, by size.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "store/layout.hpp"

namespace penstock {

/// A half-open range of a region's bytes.
struct Span {
    layout::Offset begin = 0;
    layout::Offset end = 0;
};

/// Sorts spans that do not overlap, and merges adjacent spans.
inline std::vector<Span> merged(std::vector<Span> spans) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    std::size_t count = 0;
    for (const Span& span : spans) {
        if (span.begin == span.end) continue;
        if (count > 0 && spans[count - 1].end == span.begin)
            spans[count - 1].end = span.end;
        else
            spans[count++] = span;
    }
    spans.resize(count);
    return spans;
}

/// Blocks of at most kMost bytes, in multiples of 8. Adjacent blocks are not merged here. take_all() gives all blocks
/// to the caller, which can merge them.
class FreeBlocks {
public:
    static constexpr std::uint64_t kMost = 1024;

    void put(Span block) {
        const std::uint64_t bytes = block.end - block.begin;
        blocks_[bytes / 8].push_back(block.begin);
        bytes_ += bytes;
    }
    /// A block of exactly this size; 0 if there is none.
    layout::Offset take(std::uint64_t bytes) {
        if (bytes > kMost || blocks_[bytes / 8].empty()) return 0;
        const layout::Offset begin = blocks_[bytes / 8].back();
        blocks_[bytes / 8].pop_back();
        bytes_ -= bytes;
        return begin;
    }
    std::uint64_t bytes() const { return bytes_; }
    void append_to(std::vector<Span>& spans) const {
        for (std::uint64_t i = 0; i < blocks_.size(); ++i)
            for (const layout::Offset begin : blocks_[i]) spans.push_back({begin, begin + 8 * i});
    }
    std::vector<Span> take_all() {
        std::vector<Span> spans;
        append_to(spans);
        for (auto& blocks : blocks_) blocks = {};
        bytes_ = 0;
        return spans;
    }

private:
    std::array<std::vector<layout::Offset>, kMost / 8 + 1> blocks_;
    std::uint64_t bytes_ = 0;
};

}  // namespace penstock
