// A shard's region as the walks of store/lookup.hpp read it when it lies elsewhere: in place where it is mapped into
// this process, otherwise from copies. What is not copied yet reads as zeros, which end every walk, and is noted as
// missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "errors.hpp"
#include "remote/copies.hpp"
#include "store/layout.hpp"

namespace penstock::remote {

/// A shard as a view began on it.
struct ShardImage {
    std::uint32_t number = 0;
    dataplane::RegionId region;
    const std::byte* base = nullptr;  // where it is mapped; nullptr: on another node
    layout::Header header{};          // as of a moment after the view's snapshot was published
};

/// One walk: whether it met something missing, and how far it went.
struct Walk {
    static constexpr int kMaxSteps = 1 << 17;  // beyond the labels of any record: what was read makes no sense
    bool missing = false;
    int steps = 0;
    Copies::Range last;  // the range met last: most reads lie within it
};

class ShardMemory {
public:
    ShardMemory(const ShardImage& image, Copies& copies, Walk& walk) : image_(image), copies_(copies), walk_(walk) {}

    /// The region's header is as of the view's beginning: whatever began to be used later, the view does not need.
    template <class T>
    const T& at(layout::Offset offset, std::uint64_t bytes = sizeof(T)) const {
        if constexpr (std::is_same_v<T, layout::Header>)
            return image_.header;
        else
            return *reinterpret_cast<const T*>(find(offset, bytes, wanted<T>(bytes)));
    }
    /// The header word as it is now.
    std::uint64_t word_now(layout::Offset offset) const {
        return layout::load_acquire(*reinterpret_cast<const std::uint64_t*>(find(offset, 8, 8)));
    }
    /// Several values behind one another, of which the first is needed for sure.
    template <class T>
    const T& first_of(layout::Offset offset, std::uint64_t count) const {
        return *reinterpret_cast<const T*>(find(offset, sizeof(T), count * sizeof(T)));
    }
    const layout::ListExtent* extent(layout::Offset offset, std::uint32_t values) const;
    /// Values within an extent; nullptr where they are missing.
    const TermId* values(layout::Offset offset, std::uint64_t count) const;
    /// Reads a word with whatever is read next: the walk is going to come there.
    void expect_word(layout::Offset offset) const;
    bool missing() const { return walk_.missing; }

private:
    static constexpr std::uint64_t kRecordBytes = 192;  // a record with up to eight labels
    static constexpr std::uint64_t kListValues = 62;    // an extent in half a kilobyte

    template <class T>
    static constexpr std::uint64_t wanted(std::uint64_t bytes) {
        return std::is_same_v<T, layout::Directory> ? std::max(bytes, kRecordBytes) : bytes;
    }
    std::uint64_t readable() const;
    const std::byte* find(layout::Offset offset, std::uint64_t bytes, std::uint64_t wanted) const;

    const ShardImage& image_;
    Copies& copies_;
    Walk& walk_;
};

}  // namespace penstock::remote
