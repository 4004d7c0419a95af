// A region's file, mapped read-only. Local readers copy from it, and a node's server sends from it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::dataplane {

/// While the file is mapped, it is allowed to grow, but not to shrink, because after a truncation, SIGBUS ends this
/// process. Thread-safe.
class MappedRegion {
public:
    /// Reserves `reserve_bytes` of address space, at least the file's size. StorageError.
    MappedRegion(std::string path, std::uint64_t reserve_bytes);
    ~MappedRegion();
    MappedRegion(MappedRegion&& other) noexcept;
    MappedRegion& operator=(MappedRegion&&) = delete;

    /// Whether the file contains these bytes. Queries the file's size only if the bytes are beyond the last known size.
    bool has(std::uint64_t offset, std::uint64_t length) const;
    std::uint64_t bytes() const;  // the file's current size, as far as it is mapped
    /// Copies whole words, each in one load, in no particular order. The caller must have checked has().
    void copy(std::uint64_t offset, std::uint64_t length, std::byte* into) const;

    const std::byte* data() const { return base_; }
    std::uint64_t reserve_bytes() const { return reserve_bytes_; }
    std::uint64_t device() const { return device_; }
    std::uint64_t inode() const { return inode_; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
    std::uint64_t reserve_bytes_;
    std::uint64_t device_ = 0, inode_ = 0;
    int file_ = -1;
    const std::byte* base_ = nullptr;
    mutable std::atomic<std::uint64_t> known_bytes_{0};  // relaxed: a stale size only causes another query
};

}  // namespace penstock::dataplane
