// A shard as another process reads it: its region mapped read-only while the writer goes on. No lock is taken and
// nothing is written; what memory was recycled under a reader is noticed, and read again (docs/store-layout.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "store/layout.hpp"

namespace penstock {

/// Every list comes as of a published snapshot, at or after latest() at the time of the call; two calls may see
/// different ones. Thread-safe. StorageError where the file is no region, or a commit stays half published for longer
/// than `patience` (its writer died).
class ShardReader {
public:
    explicit ShardReader(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(30));
    ~ShardReader();
    ShardReader(const ShardReader&) = delete;
    ShardReader& operator=(const ShardReader&) = delete;

    Snapshot latest() const;
    std::vector<TermId> neighbours(TermId vertex, Label label, Dir dir) const;
    /// Vertices of this shard with at least one such edge.
    std::vector<TermId> vertices(Label label, Dir dir) const;
    std::int64_t vts(std::uint32_t stream) const;  // Local_VTS; kNever where the stream has not closed a batch

    std::uint64_t epoch() const;  // of the region's incarnation
    bool retired() const;         // its writer has let go: look for a newer epoch

private:
    class Memory;
    template <class Read>
    auto attempt(Read read) const;
    std::vector<TermId> copy_list(const Memory& memory, layout::Offset entry) const;
    const layout::Header& header() const { return *reinterpret_cast<const layout::Header*>(base_); }

    std::string path_;
    std::chrono::milliseconds patience_;
    std::uint64_t reserve_bytes_ = 0;
    const char* base_ = nullptr;
};

}  // namespace penstock
