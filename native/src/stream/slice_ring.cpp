#include "stream/slice_ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "errors.hpp"

namespace penstock {
namespace {

// A multiple of every page size in use; also the size of the header that remains of a segment without pages.
constexpr std::size_t kPage = 64 << 10;
constexpr std::size_t kSmallestSegment = 2 * kPage;
constexpr std::size_t kLargestSegment = 64 << 20;  // except for a single larger slice
constexpr std::size_t kSegmentsOfLive = 8;         // target: live slices fill about this many segments

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
    throw StorageError("cannot " + what + " " + path + ": " + std::generic_category().message(error));
}

int make_file(const std::string& path) {
    ::unlink(path.c_str());  // from a process that crashed; its readers' mappings stay valid
    const int file = path.empty() ? ::memfd_create("penstock-slices", MFD_CLOEXEC)
                                  : ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) fail("create", path, errno);
    return file;
}

}  // namespace

struct SliceRing::Segment {
    std::uint64_t offset;
    std::size_t bytes;
    std::byte* data;  // its mapping; permanent
    std::uint32_t number;
    std::size_t end = 0;   // first unused byte
    std::size_t live = 0;  // bytes of slices that are not freed yet
    bool resident = true;

    SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(data); }
    std::size_t room() const { return bytes - end; }
};

SliceRing::SliceRing(std::string path, std::uint32_t stream, std::int64_t batch_ms)
    : path_(std::move(path)), stream_(stream), batch_ms_(batch_ms) {}

SliceRing::~SliceRing() {
    for (const auto& segment : segments_) ::munmap(segment->data, segment->bytes);
    if (file_ < 0) return;
    struct stat ours, there;
    // A later stream of this name has its own file under this path.
    if (::fstat(file_, &ours) == 0 && ::stat(path_.c_str(), &there) == 0 && ours.st_ino == there.st_ino)
        ::unlink(path_.c_str());
    ::close(file_);
}

void SliceRing::open() {
    if (file_ >= 0) return;
    const int file = make_file(path_);
    const RegionHeader header{RegionHeader::kMagic, stream_, static_cast<std::uint32_t>(kPage), batch_ms_};
    if (::pwrite(file, &header, sizeof header, 0) != sizeof header || ::ftruncate(file, kPage) != 0) {
        const int error = errno;
        ::close(file);
        fail("write", path_, error);
    }
    file_ = file;
    end_ = kPage;
}

SliceRing::Place SliceRing::place(std::size_t bytes) {
    open();
    if (current_ == nullptr || current_->room() < bytes) {
        Segment& next = segment_for(bytes + sizeof(SegmentHeader));
        begin(next);
        current_ = &next;
    }
    return {current_->data + current_->end, current_->number,
            current_->header().sequence.load(std::memory_order_relaxed), bytes};
}

void SliceRing::publish(const Place& place) {
    Segment& segment = *segments_[place.segment];
    segment.end += place.bytes;
    segment.live += place.bytes;
    used_ += place.bytes;
    segment.header().used.store(segment.end, std::memory_order_release);
}

void SliceRing::free(std::uint32_t number, std::size_t bytes) {
    Segment& segment = *segments_[number];
    segment.live -= bytes;
    used_ -= bytes;
    if (segment.live > 0) return;
    if (&segment == current_) current_ = nullptr;
    segment.header().sequence.store(0, std::memory_order_relaxed);
    give_back_spares();
}

bool SliceRing::is_spare(const Segment& segment) const { return segment.live == 0 && &segment != current_; }

/// The best recycled segment, or a new one. Prefers resident segments to those whose pages were released.
SliceRing::Segment& SliceRing::segment_for(std::size_t bytes) {
    const std::size_t aim = std::clamp(std::bit_ceil(used_ / kSegmentsOfLive + 1), kSmallestSegment, kLargestSegment);
    const std::size_t rounded = std::bit_ceil(std::max(bytes, aim));
    Segment* best = nullptr;
    for (const auto& segment : segments_) {
        if (!is_spare(*segment) || segment->bytes < bytes || (!segment->resident && segment->bytes != rounded))
            continue;
        const auto rank = [](const Segment& s) { return std::pair(!s.resident, s.bytes); };
        if (best == nullptr || rank(*segment) < rank(*best)) best = segment.get();
    }
    if (best == nullptr) return add_segment(rounded);
    if (!best->resident) {
        allocate(best->offset, best->bytes);
        best->resident = true;
        held_ += best->bytes - kPage;
    }
    return *best;
}

SliceRing::Segment& SliceRing::add_segment(std::size_t bytes) {
    allocate(end_, bytes);
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(end_));
    if (data == MAP_FAILED) fail("map", path_, errno);
    const auto number = static_cast<std::uint32_t>(segments_.size());
    segments_.push_back(std::make_unique<Segment>(Segment{end_, bytes, static_cast<std::byte*>(data), number}));
    segments_.back()->header().bytes = bytes;
    end_ += bytes;
    held_ += bytes;
    return *segments_.back();
}

/// Reserves the blocks now: a full disk is an error here instead of a SIGBUS while a slice is written.
void SliceRing::allocate(std::uint64_t offset, std::size_t bytes) {
    int error;
    do error = ::posix_fallocate(file_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    while (error == EINTR);
    if (error != 0) fail("grow", path_, error);
}

void SliceRing::begin(Segment& segment) {
    SegmentHeader& header = segment.header();
    header.sequence.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);  // before any byte of the new content: see slice_ring.hpp
    segment.end = sizeof(SegmentHeader);
    header.used.store(segment.end, std::memory_order_relaxed);
    header.sequence.store(++sequence_, std::memory_order_release);
}

/// Retains about a quarter of the used amount for the next slices and releases the pages of the rest.
void SliceRing::give_back_spares() {
    std::size_t spare = 0;
    const std::size_t allowed = std::max(2 * kSmallestSegment, used_ / 4);
    for (const auto& segment : segments_) {
        if (!segment->resident || !is_spare(*segment)) continue;
        spare += segment->bytes;
        if (spare <= allowed) continue;
        // The header's page stays, so that the region can still be traversed.
        if (::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(segment->offset + kPage),
                        static_cast<off_t>(segment->bytes - kPage)) != 0) {
            continue;  // not supported by the file system: the segment stays a spare
        }
        segment->resident = false;
        spare -= segment->bytes;
        held_ -= segment->bytes - kPage;
    }
}

}  // namespace penstock
