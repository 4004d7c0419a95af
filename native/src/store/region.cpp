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
#include "store/files.hpp"

namespace penstock {

using layout::Header;
using layout::Offset;

namespace {

// A region grows by this much, or by the size requested. Larger steps only save system calls, and make the commit that
// needs one wait longer for its pages (0.4 ms; docs/adr/0003).
constexpr std::uint64_t kSegment = std::uint64_t{1} << 20;
// Growth of one commit beyond this uses large pages: random look-ups in more memory than the TLB covers take half as
// long. Small commits do not use them, because allocating a large page can take long (docs/adr/0013).
constexpr std::uint64_t kLargePage = std::uint64_t{2} << 20;
constexpr std::uint64_t kBlockAlign = 128;
constexpr std::uint64_t kMinMerged = std::uint64_t{64} << 10;
constexpr std::uint64_t kMinRemainder = 128;  // of a recycled span: smaller rests are not tracked

std::uint64_t round_up(std::uint64_t value, std::uint64_t align) { return (value + align - 1) / align * align; }

std::uint64_t random_word() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

Region::Region(std::string path, std::uint64_t reserve_bytes)
    : path_(std::move(path)), reserve_bytes_(round_up(reserve_bytes, kSegment)) {
    if (reserve_bytes_ > layout::kMaxRegionBytes) throw LimitError("a region can reserve at most 8 TiB");
}

Region::Region(Region&& other) noexcept
    : path_(std::move(other.path_)),
      reserve_bytes_(other.reserve_bytes_),
      fd_(std::exchange(other.fd_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      live_(other.live_),
      arena_(other.arena_),
      free_(std::move(other.free_)),
      free_bytes_(other.free_bytes_),
      small_(std::move(other.small_)),
      tracked_(std::move(other.tracked_)) {}

namespace {

// A writer that was killed did not retire its file; readers that map it learn it from this mark.
void retire_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    std::uint64_t magic = 0;
    const auto retired = static_cast<std::uint64_t>(layout::RegionStatus::Retired);
    if (::pread(fd, &magic, sizeof magic, offsetof(Header, magic)) == sizeof magic && magic == layout::kMagic)
        [[maybe_unused]]
        const auto written = ::pwrite(fd, &retired, sizeof retired, offsetof(Header, status));
    ::close(fd);
}

}  // namespace

std::string Region::name() const { return path_.empty() ? "memory" : path_; }

void Region::open_file() {
    retire_file(path_);
    // Unlinked, not truncated: truncation would kill readers of an older file of that name by SIGBUS.
    if (::unlink(path_.c_str()) != 0 && errno != ENOENT) files::fail("replace region", path_);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
    if (fd_ < 0) files::fail("create region", path_);
}

void Region::map() {
    if (!path_.empty()) open_file();
    const int kind = fd_ < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    // Reserves more than requested, so that the region can start at a large-page boundary.
    void* address =
        ::mmap(nullptr, reserve_bytes_ + kLargePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) files::fail("reserve addresses for region", name());
    const auto reserved = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t begin = round_up(reserved, kLargePage);
    const std::uintptr_t end = begin + reserve_bytes_;
    if (begin > reserved) ::munmap(address, begin - reserved);
    if (reserved + reserve_bytes_ + kLargePage > end)
        ::munmap(reinterpret_cast<void*>(end), reserved + reserve_bytes_ + kLargePage - end);
    address = ::mmap(reinterpret_cast<void*>(begin), reserve_bytes_, PROT_READ | PROT_WRITE,
                     kind | MAP_FIXED | MAP_NORESERVE, fd_, 0);
    if (address == MAP_FAILED) files::fail("map region", name());
    base_ = static_cast<char*>(address);
}

void Region::begin_epoch(std::uint64_t mapped) {
    Header& header = this->header();
    header.epoch = random_word();
    header.reserve_bytes = reserve_bytes_;
    header.status = static_cast<std::uint64_t>(layout::RegionStatus::Live);
    layout::store_release(header.mapped, mapped);
    // Last: a reader that sees the magic sees the fields above.
    layout::store_release(header.magic, layout::kMagic);
    live_ = true;
}

std::string region_file(const std::string& directory, const std::string& name) {
    return directory.empty() ? directory : directory + "/" + name + ".region";
}

Region Region::create(const std::string& path, std::uint64_t reserve_bytes, std::uint32_t shard, std::uint32_t shards) {
    Region region(path, reserve_bytes);
    region.map();
    region.take_pages(0, kSegment);
    Header& header = region.header();
    header.version = layout::kVersion;
    header.shard = shard;
    header.shards = shards;
    header.header_bytes = layout::kHeaderBytes;
    header.seed = random_word();
    header.used = layout::kHeaderBytes;
    region.begin_epoch(kSegment);
    return region;
}

Region Region::load(SavedRegion& saved, std::uint64_t root, const std::string& directory,
                    const std::vector<Span>& unused, const std::string& path, std::uint64_t reserve_bytes) {
    if (saved.bytes < layout::kHeaderBytes) throw StorageError("no region of this version was saved in " + directory);
    Region region(path, std::max(reserve_bytes, saved.bytes));
    region.map();
    const std::uint64_t mapped = round_up(saved.bytes, kSegment);
    region.grown_ = mapped;
    region.take_pages(0, mapped);
    region.grown_ = 0;
    read_parts(saved, root, directory, region.base_, unused);
    const Header& header = region.header();
    if (header.magic != layout::kMagic || header.version != layout::kVersion || header.used != saved.bytes)
        throw StorageError("no region of this version was saved in " + directory);
    region.begin_epoch(mapped);
    for (const Span& span : unused) region.free_bytes_ += span.end - span.begin;
    region.keep_free(unused);
    return region;
}

void Region::retire() {
    if (live_) layout::store_release(header().status, static_cast<std::uint64_t>(layout::RegionStatus::Retired));
    live_ = false;
}

Region::~Region() {
    if (base_ != nullptr) {
        retire();
        ::munmap(base_, reserve_bytes_);
    }
    if (fd_ >= 0) {
        ::close(fd_);
        ::unlink(path_.c_str());
    }
}

void Region::take_pages(std::uint64_t from, std::uint64_t to) {
    if (to > reserve_bytes_)
        throw LimitError("region is full: " + std::to_string(reserve_bytes_) + " bytes reserved for " + name());
    if (fd_ >= 0) extend_file(from, to);
    if (grown_ >= kLargePage) ::madvise(base_ + from, to - from, MADV_HUGEPAGE);  // a hint, as the next call
    // Faulting all pages at once costs two thirds of faulting them one by one, which happens before Linux 5.14.
    ::madvise(base_ + from, to - from, MADV_POPULATE_WRITE);
}

void Region::extend_file(std::uint64_t from, std::uint64_t to) {
    // fallocate reserves the blocks now: a full disk is an error here instead of a SIGBUS at a later store.
    const int error = ::posix_fallocate(fd_, static_cast<off_t>(from), static_cast<off_t>(to - from));
    if (error == EOPNOTSUPP || error == EINVAL) {
        if (::ftruncate(fd_, static_cast<off_t>(to)) != 0) files::fail("grow region", path_);
    } else if (error != 0) {
        errno = error;
        files::fail("grow region", path_);
    }
}

void Region::grow_to(std::uint64_t bytes) {
    const std::uint64_t mapped = header().mapped;
    const std::uint64_t step = grown_ < kLargePage ? kSegment : kLargePage;
    const std::uint64_t target = bytes > reserve_bytes_ ? bytes : std::min(round_up(bytes, step), reserve_bytes_);
    take_pages(mapped, target);
    grown_ += target - mapped;
    // After the region has grown: a reader that sees the new size may access the new bytes.
    layout::store_release(header().mapped, target);
}

Offset Region::bump(std::uint64_t bytes, std::uint64_t align) {
    Header& header = this->header();
    const Offset begin = round_up(header.used, align);
    if (bytes > layout::kMaxRegionBytes || begin + bytes > header.mapped)
        grow_to(begin + std::min(bytes, layout::kMaxRegionBytes));
    if (begin > header.used) free({header.used, begin});
    header.used = begin + bytes;
    return begin;
}

// Called before memory is reused. A reader in another process may still be traversing that memory; it loads this count
// before and after its read. Release store: a reader that loads the new count also sees that nothing refers to that
// memory any longer. Fence: it orders the count before the stores of the new use. A reader that meets one of those
// stores therefore sees a changed count when it loads it again.
void Region::recycle() {
    std::atomic_ref<std::uint64_t> reclaims(header().reclaims);
    reclaims.store(reclaims.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_release);
}

bool Region::refill_arena(std::uint64_t bytes, std::uint64_t align) {
    const auto fits = [&](const Span& span) { return round_up(span.begin, align) + bytes <= span.end; };
    auto found = free_.end();  // the smallest: large spans stay for large requests
    for (auto span = free_.begin(); span != free_.end(); ++span)
        if (fits(*span) && (found == free_.end() || span->end - span->begin < found->end - found->begin)) found = span;
    if (found == free_.end()) return false;
    const Span old = std::exchange(arena_, *found);
    free_.erase(found);
    free_bytes_ -= old.end - old.begin;
    if (old.end - old.begin >= kMinRemainder) free(old);
    recycle();
    return true;
}

Offset Region::take(std::uint64_t bytes, std::uint64_t align) {
    if (free_bytes_ < bytes) return bump(bytes, align);
    const auto fits = [&] { return round_up(arena_.begin, align) + bytes <= arena_.end; };
    if (!fits() && !refill_arena(bytes, align) && !(merge_small() && refill_arena(bytes, align)))
        return bump(bytes, align);
    const Offset begin = round_up(arena_.begin, align);
    free_bytes_ -= begin + bytes - arena_.begin;  // an alignment gap is lost: under 128 bytes per table
    arena_.begin = begin + bytes;
    return begin;
}

Offset Region::allocate(std::uint64_t bytes) {
    bytes = round_up(bytes, 8);
    Offset begin = small_.bytes() == 0 ? 0 : small_.take(bytes);
    if (begin != 0)
        free_bytes_ -= bytes;
    else
        begin = take(bytes, 8);
    if (!tracked_.empty() && tracked_.back().end == begin)
        tracked_.back().end = begin + bytes;
    else
        tracked_.push_back({begin, begin + bytes});
    return begin;
}

void Region::abandon() {
    for (Span span : tracked_) free(span);
    tracked_.clear();
    grown_ = 0;
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

void Region::reuse(Span span) {
    const std::uint64_t bytes = span.end - span.begin;
    if (bytes > FreeBlocks::kMost) return free(span);
    recycle();
    small_.put(span);
    free_bytes_ += bytes;
    freed_small_ += bytes;
}

/// Called before the region grows: adjacent small blocks become larger spans. It visits all of them, and therefore does
/// nothing unless blocks of a good part of the region have become free since the last time.
bool Region::merge_small() {
    if (freed_small_ < kMinMerged || freed_small_ < header().used / 32) return false;
    freed_small_ = 0;
    keep_free(small_.take_all());
    return true;
}

/// Makes free_ and small_ of what is in free_ and the given spans, and merges adjacent ones.
void Region::keep_free(std::vector<Span> spans) {
    spans.insert(spans.end(), free_.begin(), free_.end());
    free_.clear();
    for (const Span& span : merged(std::move(spans))) {
        if (span.end - span.begin > FreeBlocks::kMost)
            free_.push_back(span);
        else
            small_.put(span);
    }
}

std::vector<Span> Region::free_spans() const {
    std::vector<Span> spans = free_;
    small_.append_to(spans);
    if (arena_.end > arena_.begin) spans.push_back(arena_);
    return spans;
}

}  // namespace penstock
