// The memory of a stream's slices: a file that other processes can map. It is a ring of segments (Wukong+S §4.1 has a
// ring buffer per stream; with segments the ring grows and shrinks with the stream's rate).
//
//   RegionHeader, padded to a page | segment | segment | ...      segment = SegmentHeader | slice | slice | ... |
//   unused
//
// Slices are written one after the other and freed in the same order, so a segment is recycled as a whole. Segments
// have power-of-two sizes. If a segment is not needed again soon, its pages return to the system. Its place in the file
// is reused for a later segment of the same size.
//
// Protocol for readers in other processes: load `sequence` (acquire; 0 = recycled), copy, fence (acquire), load
// `sequence` again. If both loads give the same number, the copy is consistent. Argument: the writer that recycles a
// segment stores 0 before a release fence, and new bytes after it. A reader whose copy contains a new byte synchronises
// with that release fence through its acquire fence. Its second load therefore sees the 0 or a later number, never the
// old one; numbers never recur in a region. `used` is stored with release after a slice's bytes, so a reader that loads
// it with acquire sees whole slices below it. (The copy races with the recycling, as in every seqlock; the reader
// discards its bytes in that case.)
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
    std::uint32_t header_bytes;  // offset of the first segment
    std::int64_t batch_ms;
};

struct SegmentHeader {
    std::atomic<std::uint64_t> sequence;  // 0 while the segment is being recycled
    std::uint64_t bytes;                  // header included; the next segment begins there. Constant
    std::atomic<std::uint64_t> used;      // header included; slices lie below this offset
    std::uint64_t reserved;
};
static_assert(sizeof(SegmentHeader) == 32 && std::atomic<std::uint64_t>::is_always_lock_free);

/// One writer. Published slices stay mapped at their address until they are freed.
class SliceRing {
public:
    /// With an empty `path` the file has no name, and no other process can map it.
    SliceRing(std::string path, std::uint32_t stream, std::int64_t batch_ms);
    ~SliceRing();  // removes the file; existing mappings stay valid
    SliceRing(const SliceRing&) = delete;
    SliceRing& operator=(const SliceRing&) = delete;

    struct Place {
        std::byte* data;
        std::uint32_t segment;
        std::uint64_t sequence;
        std::size_t bytes;
    };
    /// Creates the file if it does not exist yet. StorageError.
    void open();
    /// Allocates a place for one slice (a multiple of 8 bytes). The caller writes the slice, and then publishes it. If
    /// the caller does not publish the place, the next call allocates it again. StorageError if the file cannot grow.
    Place place(std::size_t bytes);
    void publish(const Place& place);
    /// Frees slices of a segment, in any order. No reader in this process may use them.
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
    std::vector<std::unique_ptr<Segment>> segments_;  // in order of offset
    Segment* current_ = nullptr;
    std::uint64_t end_ = 0, sequence_ = 0;
    std::size_t used_ = 0, held_ = 0;
};

}  // namespace penstock
