#include "store/region.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "errors.hpp"

namespace penstock {

using layout::Header;
using layout::Offset;

namespace {

constexpr std::uint64_t kMinSegment = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxSegment = std::uint64_t{64} << 20;
constexpr std::uint64_t kBlockAlign = 128;
constexpr std::uint64_t kMinRemainder = 128;  // of a recycled span: less is not worth remembering

std::uint64_t round_up(std::uint64_t value, std::uint64_t align) { return (value + align - 1) / align * align; }

[[noreturn]] void fail(const std::string& what, const std::string& path) {
    throw StorageError(what + " " + path + ": " + std::strerror(errno));
}

std::uint64_t random_word() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

Region::Region(std::string path, std::uint64_t reserve_bytes)
    : path_(std::move(path)), reserve_bytes_(round_up(reserve_bytes, kMinSegment)) {
    if (reserve_bytes_ > layout::kMaxRegionBytes) throw LimitError("a region can reserve at most 8 TiB");
}

Region::Region(Region&& other) noexcept
    : path_(std::move(other.path_)),
      reserve_bytes_(other.reserve_bytes_),
      fd_(std::exchange(other.fd_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      arena_(other.arena_),
      free_(std::move(other.free_)),
      free_bytes_(other.free_bytes_),
      tracked_(std::move(other.tracked_)) {}

void Region::map(int flags) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd_ < 0) fail("cannot open region", path_);
    void* address = ::mmap(nullptr, reserve_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (address == MAP_FAILED) {
        ::close(std::exchange(fd_, -1));
        fail("cannot map region", path_);
    }
    base_ = static_cast<char*>(address);
}

Region Region::create(const std::string& path, std::uint64_t reserve_bytes, std::uint32_t shard, std::uint32_t shards) {
    Region region(path, reserve_bytes);
    // Unlinked, not truncated: a reader of the old file would be killed by SIGBUS.
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("cannot replace region", path);
    region.map(O_CREAT | O_EXCL);
    region.grow_to(layout::kHeaderBytes);
    Header& header = region.header();
    header.version = layout::kVersion;
    header.shard = shard;
    header.shards = shards;
    header.header_bytes = layout::kHeaderBytes;
    header.epoch = random_word();
    header.seed = random_word();
    header.reserve_bytes = region.reserve_bytes_;
    header.status = static_cast<std::uint64_t>(layout::RegionStatus::Live);
    header.used = layout::kHeaderBytes;
    // Whoever sees the magic sees the fields above.
    layout::store_release(header.magic, layout::kMagic);
    return region;
}

Region Region::adopt(const std::string& path, std::uint64_t reserve_bytes, std::vector<Span> free) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) fail("cannot open region", path);
    const auto size = static_cast<std::uint64_t>(info.st_size);
    if (size < layout::kHeaderBytes) throw StorageError("region is truncated: " + path);
    Region region(path, std::max(reserve_bytes, size));
    region.map(0);
    Header& header = region.header();
    if (header.magic != layout::kMagic || header.version != layout::kVersion || header.used > size)
        throw StorageError("not a region of this version: " + path);
    header.epoch = random_word();
    header.reserve_bytes = region.reserve_bytes_;
    header.status = static_cast<std::uint64_t>(layout::RegionStatus::Live);
    header.mapped = size;
    for (Span span : free) region.free(span);
    return region;
}

Region::~Region() {
    if (base_ == nullptr) return;
    layout::store_release(header().status, static_cast<std::uint64_t>(layout::RegionStatus::Retired));
    ::munmap(base_, reserve_bytes_);
    ::close(fd_);
    ::unlink(path_.c_str());
}

void Region::grow_to(std::uint64_t bytes) {
    const std::uint64_t mapped = base_ != nullptr && bytes > layout::kHeaderBytes ? header().mapped : 0;
    if (bytes <= mapped) return;
    if (bytes > reserve_bytes_)
        throw LimitError("region is full: " + std::to_string(reserve_bytes_) + " bytes reserved for " + path_);
    const std::uint64_t segment = std::clamp(round_up(mapped / 8, kMinSegment), kMinSegment, kMaxSegment);
    const std::uint64_t target = std::min(reserve_bytes_, round_up(std::max(bytes, mapped + segment), kMinSegment));
    // fallocate takes the pages now: a full disk is an error here instead of a SIGBUS at some later store.
    const int error = ::posix_fallocate(fd_, static_cast<off_t>(mapped), static_cast<off_t>(target - mapped));
    if (error == EOPNOTSUPP || error == EINVAL) {
        if (::ftruncate(fd_, static_cast<off_t>(target)) != 0) fail("cannot grow region", path_);
    } else if (error != 0) {
        errno = error;
        fail("cannot grow region", path_);
    }
    // After the file has grown: who sees the new size may touch the new bytes.
    layout::store_release(header().mapped, target);
}

Offset Region::bump(std::uint64_t bytes, std::uint64_t align) {
    Header& header = this->header();
    const Offset begin = round_up(header.used, align);
    if (bytes > reserve_bytes_ || begin > reserve_bytes_ - bytes) grow_to(reserve_bytes_ + 1);  // throws
    if (begin + bytes > header.mapped) grow_to(begin + bytes);
    if (begin > header.used) free({header.used, begin});
    header.used = begin + bytes;
    return begin;
}

bool Region::refill_arena(std::uint64_t bytes, std::uint64_t align) {
    const auto fits = [&](const Span& span) { return round_up(span.begin, align) + bytes <= span.end; };
    const auto found = std::find_if(free_.begin(), free_.end(), fits);
    if (found == free_.end()) return false;
    const Span old = std::exchange(arena_, *found);
    free_.erase(found);
    free_bytes_ -= old.end - old.begin;
    if (old.end - old.begin >= kMinRemainder) free(old);
    // A reader of another process may still be on its way through this memory. It reads the counter before and after:
    // the fence keeps this store ahead of the stores that re-use the memory, so who meets those finds the counter
    // moved.
    std::atomic_ref<std::uint64_t> reclaims(header().reclaims);
    reclaims.store(reclaims.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    return true;
}

Offset Region::take(std::uint64_t bytes, std::uint64_t align) {
    if (free_bytes_ < bytes) return bump(bytes, align);
    if (round_up(arena_.begin, align) + bytes > arena_.end && !refill_arena(bytes, align)) return bump(bytes, align);
    const Offset begin = round_up(arena_.begin, align);
    free_bytes_ -= begin + bytes - arena_.begin;  // the gap of an alignment is lost: under 128 bytes a table
    arena_.begin = begin + bytes;
    return begin;
}

Offset Region::allocate(std::uint64_t bytes) {
    bytes = round_up(bytes, 8);
    const Offset begin = take(bytes, 8);
    if (!tracked_.empty() && tracked_.back().end == begin)
        tracked_.back().end = begin + bytes;
    else
        tracked_.push_back({begin, begin + bytes});
    return begin;
}

void Region::abandon() {
    for (Span span : tracked_) free(span);
    tracked_.clear();
}

Offset Region::allocate_block(std::uint64_t bytes) {
    bytes = round_up(bytes, kBlockAlign);
    const Offset begin = take(bytes, kBlockAlign);
    std::memset(base_ + begin, 0, bytes);
    return begin;
}

void Region::free(Span span) {
    if (span.end <= span.begin) return;
    free_bytes_ += span.end - span.begin;
    auto next = std::lower_bound(free_.begin(), free_.end(), span.begin,
                                 [](const Span& s, Offset begin) { return s.begin < begin; });
    if (next != free_.end() && next->begin == span.end) {
        span.end = next->end;
        next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->end == span.begin)
        std::prev(next)->end = span.end;
    else
        free_.insert(next, span);
}

std::vector<Span> Region::free_spans() const {
    std::vector<Span> spans = free_;
    if (arena_.end > arena_.begin) spans.push_back(arena_);
    return spans;
}

}  // namespace penstock
