// One shard's memory. It is mapped once over a large reserved address range and grows by segments, so nothing in it
// moves. It is a file if other processes map it read-only (docs/store-layout.md); otherwise it is anonymous memory,
// which the kernel places on large pages more readily (docs/adr/0013).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/free_blocks.hpp"
#include "store/layout.hpp"
#include "store/saved_region.hpp"

namespace penstock {

/// The path of a region's file in a directory. Empty if `directory` is empty: the region is anonymous memory.
std::string region_file(const std::string& directory, const std::string& name);

/// Owned by the shard's writer. Only the writer's thread allocates and frees; at() is thread-safe.
class Region {
public:
    /// A new, empty region. Unlinks an older file of that name. The readers of the older file keep their mapping. With
    /// an empty `path` the region has no file.
    static Region create(const std::string& path, std::uint64_t reserve_bytes, std::uint32_t shard,
                         std::uint32_t shards);
    /// A new epoch of a saved region, writable, under `path`. Its content is assembled from the parts in `directory`,
    /// its unused spans become free, and the checksums of its blocks go into `saved`. StorageError if the content
    /// differs from what was saved.
    static Region load(SavedRegion& saved, std::uint64_t root, const std::string& directory,
                       const std::vector<Span>& unused, const std::string& path, std::uint64_t reserve_bytes);

    Region(Region&& other) noexcept;
    Region& operator=(Region&&) = delete;
    ~Region();  // marks a file retired and unlinks it; Store::save makes durable copies
    /// Marks the region retired. Readers in other processes see the mark in the header and look for a newer epoch.
    void retire();

    layout::Header& header() const { return at<layout::Header>(0); }
    template <class T>
    T& at(layout::Offset offset, std::uint64_t = 0) const {
        return *reinterpret_cast<T*>(base_ + offset);
    }
    const layout::ListExtent* extent(layout::Offset offset, std::uint32_t) const {
        return &at<layout::ListExtent>(offset);
    }
    std::uint64_t& word(layout::Offset offset) const { return at<std::uint64_t>(offset); }

    /// Allocates bytes for the running commit, 8-aligned, content undefined. LimitError if the region is full,
    /// StorageError if the file cannot grow. Both errors leave the region unchanged. keep() or abandon() ends the
    /// commit.
    layout::Offset allocate(std::uint64_t bytes);
    void keep() {
        tracked_.clear();
        grown_ = 0;
    }
    void abandon();

    /// Allocates bytes that belong to no commit (tables, label rows), zeroed, 128-aligned.
    layout::Offset allocate_block(std::uint64_t bytes);
    /// Frees memory that no reader of this process can reach any longer.
    void free(Span span);
    /// As free(). Small blocks are kept by size, so that allocate() finds the memory of freed short lists at once.
    void reuse(Span span);

    std::uint64_t used_bytes() const { return header().used - free_bytes_; }
    /// Bytes that can still be allocated, in spans of any size.
    std::uint64_t room() const { return reserve_bytes_ - used_bytes(); }
    /// All unused spans below header().used.
    std::vector<Span> free_spans() const;
    const std::string& path() const { return path_; }
    std::string_view content() const { return {base_, header().used}; }  // all used bytes

private:
    Region(std::string path, std::uint64_t reserve_bytes);
    void open_file();
    void map();
    std::string name() const;
    void take_pages(std::uint64_t from, std::uint64_t to);
    void extend_file(std::uint64_t from, std::uint64_t to);
    void grow_to(std::uint64_t bytes);
    void begin_epoch(std::uint64_t mapped);
    layout::Offset take(std::uint64_t bytes, std::uint64_t align);
    layout::Offset bump(std::uint64_t bytes, std::uint64_t align);
    void recycle();
    bool merge_small();
    void keep_free(std::vector<Span> spans);
    bool refill_arena(std::uint64_t bytes, std::uint64_t align);

    std::string path_;
    std::uint64_t reserve_bytes_;
    int fd_ = -1;  // -1 without a file
    char* base_ = nullptr;
    bool live_ = false;              // the header is complete
    Span arena_;                     // a recycled span; small requests are allocated from it
    std::vector<Span> free_;         // other free spans, by address
    std::uint64_t free_bytes_ = 0;   // in arena_, free_ and small_
    FreeBlocks small_;               // free blocks of reuse()
    std::uint64_t freed_small_ = 0;  // bytes given to small_ since merge_small()
    std::vector<Span> tracked_;      // allocations of the running commit
    std::uint64_t grown_ = 0;        // bytes by which the running commit grew the region
};

}  // namespace penstock
