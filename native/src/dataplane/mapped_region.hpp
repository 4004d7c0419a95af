// A region's file mapped read-only: what local readers copy from, and what a node's server sends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::dataplane {

/// The file may grow while it is mapped, never shrink: a file that is cut ends this process by SIGBUS. Any thread.
class MappedRegion {
public:
    /// Takes `reserve_bytes` of address space, at least the file's size. StorageError.
    MappedRegion(std::string path, std::uint64_t reserve_bytes);
    ~MappedRegion();
    MappedRegion(MappedRegion&& other) noexcept;
    MappedRegion& operator=(MappedRegion&&) = delete;

    /// Whether these bytes are there. Asks for the file's size only beyond what was there last time.
    bool has(std::uint64_t offset, std::uint64_t length) const;
    std::uint64_t bytes() const;  // of the file as it is now, as far as it is mapped
    /// Whole words, each in one load; no order between them. The caller has asked has().
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
    mutable std::atomic<std::uint64_t> known_bytes_{0};  // relaxed: a stale size only costs another look
};

}  // namespace penstock::dataplane
