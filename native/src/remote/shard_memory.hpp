// The `Memory` of a shard in another process, for the traversals of store/lookup.hpp. If the shard's region is mapped
// into this process, it is read in place. Otherwise, copies are read. Data that is not yet copied reads as zeros, which
// end every traversal, and is recorded as missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "errors.hpp"
#include "remote/copies.hpp"
#include "store/layout.hpp"

namespace penstock::remote {

/// A shard at the time at which a view was created.
struct ShardImage {
    std::uint32_t number = 0;
    dataplane::RegionId region;
    const std::byte* base = nullptr;  // its mapping; nullptr: on another node
    layout::Header header{};          // read after the view's snapshot was published
};

/// One traversal: whether it has reached missing data, and its number of steps.
struct Walk {
    static constexpr int kMaxSteps = 1 << 17;  // more steps than any valid record has; a longer walk means corrupt data
    bool missing = false;
    int steps = 0;
    Copies::Range last;  // the last used range, which contains most reads
};

class ShardMemory {
public:
    ShardMemory(const ShardImage& image, Copies& copies, Walk& walk) : image_(image), copies_(copies), walk_(walk) {}

    /// The header of the region is from the creation of the view. The view does not need tables and rows that were
    /// added later.
    template <class T>
    const T& at(layout::Offset offset, std::uint64_t bytes = sizeof(T)) const {
        if constexpr (std::is_same_v<T, layout::Header>)
            return image_.header;
        else
            return *reinterpret_cast<const T*>(find(offset, bytes, request_bytes<T>(bytes)));
    }
    /// The current value of a header word.
    std::uint64_t word_now(layout::Offset offset) const {
        return layout::load_acquire(*reinterpret_cast<const std::uint64_t*>(find(offset, 8, 8)));
    }
    /// An array of values. The caller uses at least the first value.
    template <class T>
    const T& first_of(layout::Offset offset, std::uint64_t count) const {
        return *reinterpret_cast<const T*>(find(offset, sizeof(T), count * sizeof(T)));
    }
    const layout::ListExtent* extent(layout::Offset offset, std::uint32_t values) const;
    /// Values within an extent; nullptr if they are missing.
    const TermId* values(layout::Offset offset, std::uint64_t count) const;
    /// Adds a word to the next round of reads, because the traversal will need it.
    void expect_word(layout::Offset offset) const;
    bool missing() const { return walk_.missing; }

private:
    static constexpr std::uint64_t kRecordBytes = 192;  // a record with up to eight labels
    static constexpr std::uint64_t kListValues = 62;    // an extent in half a kilobyte

    template <class T>
    static constexpr std::uint64_t request_bytes(std::uint64_t bytes) {
        return std::is_same_v<T, layout::Directory> ? std::max(bytes, kRecordBytes) : bytes;
    }
    std::uint64_t readable() const;
    const std::byte* find(layout::Offset offset, std::uint64_t bytes, std::uint64_t request_bytes) const;

    const ShardImage& image_;
    Copies& copies_;
    Walk& walk_;
};

}  // namespace penstock::remote
