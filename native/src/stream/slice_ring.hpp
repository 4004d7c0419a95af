// Where a stream's slices lie: a file that other processes can map and other nodes read one-sidedly, used as a ring of
// segments (Wukong+S §4.1 has a ring buffer per stream; segments let ours grow and shrink with the stream's rate).
//
//   RegionHeader, padded to a page | segment | segment | ...      segment = SegmentHeader | slice | slice | ... |
//   unused
//
// Slices are written one behind the other and leave in the same order, so a segment is recycled as a whole. Segments
// have power-of-two sizes; one that is not needed again soon gives its pages back and keeps its place in the file for a
// later one of its size.
//
// Readers elsewhere: load `sequence` (acquire; 0 = recycled), copy, fence (acquire), load `sequence` again: equal means
// that the copy is whole. Argument: the writer that recycles stores 0 before a release fence and new bytes after it. A
// reader that has seen one of the new bytes and then passes its acquire fence synchronises with that fence, so its
// second load sees the 0 or a later number, never the old one; numbers never come twice in a region. `used` is stored
// with release after the slice's bytes, so whoever loads it with acquire sees whole slices below it. (The copy itself
// races with the recycler, as in every seqlock; its bytes are thrown away then.)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

struct RegionHeader {
    static constexpr std::uint64_t kMagic = 0x3163696C536E6550ull;  // "PenSlic1" on a little-endian machine
    std::uint64_t magic;
    std::uint32_t stream;
    std::uint32_t header_bytes;  // where the first segment begins
    std::int64_t batch_ms;
};

/// Where the slices lie, in the first page: the last kSlices of them, by their number modulo that. A reader loads
/// `count` first, then entries, then slices, then the sequence of their segments again.
struct SliceIndex {
    static constexpr std::uint64_t kOffset = 64;  // in the file
    static constexpr std::uint64_t kSlices = 1600;
    struct Entry {
        std::int64_t batch;
        std::uint64_t offset;  // of the slice in the file
        std::uint64_t bytes;
        std::uint64_t segment;   // offset of its segment
        std::uint64_t sequence;  // of its segment, while the slice is live
    };
    std::atomic<std::uint64_t> count;  // slices published so far
    std::uint64_t unused[7];
    Entry entries[kSlices];
};
static_assert(SliceIndex::kOffset + sizeof(SliceIndex) <= 64 << 10);

struct SegmentHeader {
    std::atomic<std::uint64_t> sequence;  // 0 while it is recycled
    std::uint64_t bytes;                  // header included; the next segment begins there. Never changes
    std::atomic<std::uint64_t> used;      // header included; slices lie below
    std::uint64_t reserved;
};
static_assert(sizeof(SegmentHeader) == 32 && std::atomic<std::uint64_t>::is_always_lock_free);

/// One writer. Slices that it gave out stay mapped where they are until they are freed.
class SliceRing {
public:
    /// Where `path` is empty the file has no name, and nobody else can map it.
    SliceRing(std::string path, std::uint32_t stream, std::int64_t batch_ms);
    ~SliceRing();  // removes the file; who has mapped it keeps the pages
    SliceRing(const SliceRing&) = delete;
    SliceRing& operator=(const SliceRing&) = delete;

    struct Place {
        std::byte* data;
        std::uint32_t segment;
        std::uint64_t sequence;
        std::size_t bytes;
    };
    /// Makes the file, where that was not done yet. StorageError.
    void open();
    /// Room for one slice (a multiple of 8 bytes), to be written and then published. A place that is not published is
    /// given out again. StorageError where the file cannot grow.
    Place place(std::size_t bytes);
    void publish(const Place& place, std::int64_t batch);
    /// The slices of a segment are freed in any order; nobody in this process reads them any more.
    void free(std::uint32_t segment, std::size_t bytes);

    std::size_t used_bytes() const { return used_; }  // of published slices
    std::size_t held_bytes() const { return held_; }  // of memory

private:
    struct Segment;
    Segment& segment_for(std::size_t bytes);
    Segment& add_segment(std::size_t bytes);
    void begin(Segment& segment);
    void give_back_spares();
    void allocate(std::uint64_t offset, std::size_t bytes);
    bool is_spare(const Segment& segment) const;

    std::string path_;
    std::uint32_t stream_;
    std::int64_t batch_ms_;
    int file_ = -1;
    SliceIndex* index_ = nullptr;
    std::vector<std::unique_ptr<Segment>> segments_;  // in order of offset
    Segment* current_ = nullptr;
    std::uint64_t end_ = 0, sequence_ = 0;
    std::size_t used_ = 0, held_ = 0;
};

}  // namespace penstock
