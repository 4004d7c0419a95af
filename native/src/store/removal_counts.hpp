// Counts, for each label, how often a vertex was removed from an index list. With these counts, the planner's numbers
// of vertices are exact.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "store/layout.hpp"

namespace penstock {

/// One writer; reads are thread-safe. Empty, and without memory, until the first removal.
class RemovalCounts {
public:
    std::uint32_t get(Label label, Dir dir) const {
        // Acquire: makes the zeroed counts visible. The counts are relaxed, because they are statistics that order
        // nothing.
        const Count* const counts = chunks_[layout::LabelChunk::number(label)].load(std::memory_order_acquire);
        return counts == nullptr ? 0 : counts[place(label, dir)].load(std::memory_order_relaxed);
    }
    /// Makes space for the label. Must precede add(), which cannot fail.
    void reserve(Label label) {
        const std::size_t number = layout::LabelChunk::number(label);
        if (owned_[number] != nullptr) return;
        owned_[number] = std::make_unique<Count[]>(2 * layout::LabelChunk::rows(number));
        chunks_[number].store(owned_[number].get(), std::memory_order_release);
    }
    void add(Label label, Dir dir) { set(label, dir, get(label, dir) + 1); }
    void set(Label label, Dir dir, std::uint32_t count) {
        owned_[layout::LabelChunk::number(label)][place(label, dir)].store(count, std::memory_order_relaxed);
    }

private:
    using Count = std::atomic<std::uint32_t>;
    static std::size_t place(Label label, Dir dir) {
        return 2 * (label - layout::LabelChunk::first(layout::LabelChunk::number(label))) +
               static_cast<std::size_t>(dir);
    }
    std::array<std::unique_ptr<Count[]>, layout::LabelChunk::kChunks> owned_;
    std::array<std::atomic<Count*>, layout::LabelChunk::kChunks> chunks_{};
};

}  // namespace penstock
