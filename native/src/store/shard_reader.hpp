// A shard as another process reads it: the region is mapped read-only while the writer continues. Reading takes no lock
// and writes nothing. A read during which the writer recycled memory is detected and repeated (docs/store-layout.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "store/layout.hpp"

namespace penstock {

/// Each call returns a list at a published snapshot. This snapshot is not before latest() at the time of the call. Two
/// calls can use different snapshots. Thread-safe. StorageError if the file is not a region, or if a commit stays half
/// published for longer than `patience`, because its writer has died.
class ShardReader {
public:
    explicit ShardReader(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(30));
    ~ShardReader();
    ShardReader(const ShardReader&) = delete;
    ShardReader& operator=(const ShardReader&) = delete;

    Snapshot latest() const;
    std::vector<TermId> neighbours(TermId vertex, Label label, Dir dir) const;
    /// Vertices of this shard with at least one edge of the label in the direction.
    std::vector<TermId> vertices(Label label, Dir dir) const;
    std::int64_t vts(std::uint32_t stream) const;  // Local_VTS; kNever if the stream has closed no batch

    std::uint64_t epoch() const;  // of the region's incarnation
    bool retired() const;         // its writer has released it: look for a newer epoch

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
