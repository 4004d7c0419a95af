#include "remote/shard_memory.hpp"

#include <algorithm>

namespace penstock::remote {

using layout::ListExtent;
using layout::Offset;

namespace {

// As long as the longest structure that a traversal reads: a directory whose capacity it already knows.
alignas(16) const std::byte kZeros[96 << 10] = {};
static_assert(layout::Directory::bytes(0xFFF) <= sizeof kZeros);

}  // namespace

std::uint64_t ShardMemory::readable() const {
    if (image_.base == nullptr) return image_.header.reserve_bytes;
    return layout::load_acquire(reinterpret_cast<const layout::Header*>(image_.base)->mapped);  // the file's bytes
}

const std::byte* ShardMemory::find(Offset offset, std::uint64_t bytes, std::uint64_t request_bytes) const {
    if (walk_.missing) return kZeros;
    const std::uint64_t end = readable();
    if (++walk_.steps > Walk::kMaxSteps || offset % 8 != 0 || offset > end || bytes > end - offset)
        throw StorageError("shard " + std::to_string(image_.number) + " has an offset that leads nowhere");
    if (image_.base != nullptr) return image_.base + offset;
    const std::uint64_t key = Copies::key_of(image_.number, offset);
    if (key >= walk_.last.key && key + bytes <= walk_.last.key + walk_.last.bytes)
        return walk_.last.data + (key - walk_.last.key);
    const Copies::Range* range = copies_.find(key);
    if (range != nullptr && range->bytes >= bytes) {
        walk_.last = *range;
        return range->data;
    }
    // The guess must not exceed the file. Data of later commits may be beyond the size that the view knows.
    bytes = (bytes + 7) / 8 * 8;
    const std::uint64_t mapped = image_.header.mapped;
    request_bytes = offset < mapped ? std::min((request_bytes + 7) / 8 * 8, mapped - offset) : 0;
    copies_.request(key, image_.region, offset, std::max(bytes, request_bytes));
    walk_.missing = true;
    return kZeros;
}

const ListExtent* ShardMemory::extent(Offset offset, std::uint32_t values) const {
    const auto guess = ListExtent::bytes(std::min<std::uint64_t>(values, kListValues));
    const auto* extent = reinterpret_cast<const ListExtent*>(find(offset, sizeof(ListExtent), guess));
    if (walk_.missing) return nullptr;
    // A search reads all sorted values, also if it meets an extent newer than the state that was read.
    const std::uint64_t needed = ListExtent::bytes(std::min(std::max(values, extent->sorted), extent->capacity));
    extent = reinterpret_cast<const ListExtent*>(find(offset, needed, needed));
    return walk_.missing ? nullptr : extent;
}

const TermId* ShardMemory::values(Offset offset, std::uint64_t count) const {
    const auto* values = reinterpret_cast<const TermId*>(find(offset, count * sizeof(TermId), 0));
    return walk_.missing ? nullptr : values;
}

void ShardMemory::expect_word(Offset offset) const {
    const std::uint64_t key = Copies::key_of(image_.number, offset);
    if (image_.base == nullptr && copies_.find(key) == nullptr) copies_.request(key, image_.region, offset, 8);
}

}  // namespace penstock::remote
