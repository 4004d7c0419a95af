// One shard's memory: mapped once over a large reserved range of addresses and grown by segments, so that nothing in it
// ever moves. It is a file where other processes are to map it read-only (docs/store-layout.md), else memory of this
// process alone, which the system puts on large pages more readily (docs/adr/0013).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/layout.hpp"
#include "store/saved_region.hpp"

namespace penstock {

/// Half-open range of a region.
struct Span {
    layout::Offset begin = 0;
    layout::Offset end = 0;
};

/// The path of a region's file in a directory; empty, as memory's, where the directory is.
std::string region_file(const std::string& directory, const std::string& name);

/// Owned by the shard's writer: allocation and freeing are its thread's alone; at() is anybody's.
class Region {
public:
    /// A new, empty region; an old file of that name is unlinked first (its readers keep their mapping). Where `path`
    /// is empty it has no file.
    static Region create(const std::string& path, std::uint64_t reserve_bytes, std::uint32_t shard,
                         std::uint32_t shards);
    /// A new epoch of a saved region: what its parts in a directory make, under `path`, writable, with its unused
    /// spans; the checksums of its blocks go into `saved`. StorageError where that is not exactly what was saved.
    static Region load(SavedRegion& saved, std::uint64_t root, const std::string& directory,
                       const std::vector<Span>& unused, const std::string& path, std::uint64_t reserve_bytes);

    Region(Region&& other) noexcept;
    Region& operator=(Region&&) = delete;
    ~Region();  // marks a file retired and unlinks it: what lasts is made by Store::save
    /// Marks the region retired now: readers in other processes find it in the header and look for a newer epoch.
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

    /// Bytes for one commit, 8-aligned, content undefined. LimitError where the region is full, StorageError where the
    /// file cannot grow; nothing is lost then. The commit ends by keep() or abandon().
    layout::Offset allocate(std::uint64_t bytes);
    void keep() {
        tracked_.clear();
        grown_ = 0;
    }
    void abandon();

    /// Bytes that belong to no commit (tables, label rows), zeroed, 128-aligned.
    layout::Offset allocate_block(std::uint64_t bytes);
    /// Gives back memory that no reader of this process can reach any more.
    void free(Span span);

    std::uint64_t used_bytes() const { return header().used - free_bytes_; }
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
    bool refill_arena(std::uint64_t bytes, std::uint64_t align);

    std::string path_;
    std::uint64_t reserve_bytes_;
    int fd_ = -1;  // -1 without a file
    char* base_ = nullptr;
    bool live_ = false;             // the header is complete
    Span arena_;                    // a recycled span that small requests are carved from
    std::vector<Span> free_;        // others, by address
    std::uint64_t free_bytes_ = 0;  // arena_ and free_
    std::vector<Span> tracked_;     // what the running commit took
    std::uint64_t grown_ = 0;       // bytes that it made the region grow by
};

}  // namespace penstock
