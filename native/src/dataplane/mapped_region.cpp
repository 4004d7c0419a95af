#include "dataplane/mapped_region.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "store/files.hpp"

namespace penstock::dataplane {

MappedRegion::MappedRegion(std::string path, std::uint64_t reserve_bytes)
    : path_(std::move(path)), reserve_bytes_(reserve_bytes) {
    file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) files::fail("open region", path_);
    struct stat status{};
    if (::fstat(file_, &status) == 0) {
        device_ = status.st_dev;
        inode_ = status.st_ino;
        reserve_bytes_ = std::max(reserve_bytes_, static_cast<std::uint64_t>(status.st_size));
        void* address = ::mmap(nullptr, reserve_bytes_, PROT_READ, MAP_SHARED | MAP_NORESERVE, file_, 0);
        if (address != MAP_FAILED) base_ = static_cast<const std::byte*>(address);
    }
    if (base_ != nullptr) return;
    const int error = errno;
    ::close(file_);
    errno = error;
    files::fail("map region", path_);
}

MappedRegion::MappedRegion(MappedRegion&& other) noexcept
    : path_(std::move(other.path_)),
      reserve_bytes_(other.reserve_bytes_),
      device_(other.device_),
      inode_(other.inode_),
      file_(std::exchange(other.file_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      known_bytes_(other.known_bytes_.load(std::memory_order_relaxed)) {}

MappedRegion::~MappedRegion() {
    if (base_ == nullptr) return;
    ::munmap(const_cast<std::byte*>(base_), reserve_bytes_);
    ::close(file_);
}

std::uint64_t MappedRegion::bytes() const {
    struct stat status{};
    if (::fstat(file_, &status) != 0) return known_bytes_.load(std::memory_order_relaxed);
    const std::uint64_t bytes = std::min(static_cast<std::uint64_t>(status.st_size), reserve_bytes_);
    known_bytes_.store(bytes, std::memory_order_relaxed);
    return bytes;
}

bool MappedRegion::has(std::uint64_t offset, std::uint64_t length) const {
    const auto within = [&](std::uint64_t bytes) { return offset <= bytes && length <= bytes - offset; };
    return within(known_bytes_.load(std::memory_order_relaxed)) || within(bytes());
}

// Atomic loads, because a writer in another process may store these words concurrently. Relaxed, because a read
// guarantees no internal order (plane.hpp). memcpy would not guarantee whole words.
void MappedRegion::copy(std::uint64_t offset, std::uint64_t length, std::byte* into) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(base_ + offset);
    for (std::uint64_t i = 0; i < length / 8; ++i) {
        const std::uint64_t word =
            std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(words[i])).load(std::memory_order_relaxed);
        std::memcpy(into + 8 * i, &word, sizeof word);
    }
}

}  // namespace penstock::dataplane
