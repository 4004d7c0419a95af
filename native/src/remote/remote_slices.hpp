// A stream's closed batches, copied from the nodes that publish them. Each slice is copied once per engine and retained
// until no window of the engine needs it (the paper's locality-aware replication of the stream index, by pull: Wukong+S
// §4.2; ADR 16).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "remote/remote_store.hpp"
#include "stream/slice_ring.hpp"
#include "stream/stream.hpp"

namespace penstock::remote {

/// Not thread-safe. The store must outlive it.
class RemoteSlices final : public SliceSource {
public:
    /// LimitError if copies would take more than `memory_bytes` (0: no limit).
    RemoteSlices(RemoteStore& store, std::uint32_t stream, std::int64_t batch_ms, std::size_t memory_bytes)
        : store_(store), stream_(stream), batch_ms_(batch_ms), memory_bytes_(memory_bytes) {}

    /// Copies the slices that are missing here, of batches up to `batch`, which every node must have closed
    /// (RemoteStore::stable_vts). dataplane::Error, or StorageError if a slice was recycled before it was copied; both
    /// leave the object unchanged.
    void take(std::int64_t batch);
    /// Discards copies of batches up to and including `batch`, and never copies them from now on.
    void release(std::int64_t batch);

    void slices(std::int64_t first, std::int64_t last, const std::function<void(const SliceView&)>& f) const override;
    std::int64_t closed() const override { return closed_; }
    std::int64_t batch_ms() const override { return batch_ms_; }
    std::size_t tuples() const { return tuples_; }
    std::size_t bytes() const { return tuples_ * kTupleBytes; }

private:
    static constexpr std::size_t kTupleBytes = 28;
    struct Slice {
        std::int64_t batch;
        std::vector<std::int64_t> ts;
        std::vector<TermId> s, o;
        std::vector<Label> label;
    };
    struct Part;
    struct Cursor {
        RemoteStore::SliceRegion region;
        std::uint64_t count = 0;  // slices of that region that were copied or skipped
    };

    std::vector<Part> find_parts(std::map<dataplane::Node, Cursor>& cursors, std::int64_t batch);
    void copy_parts(std::vector<Part>& parts);
    static Slice merge(std::span<const Part> parts);

    RemoteStore& store_;
    std::uint32_t stream_;
    std::int64_t batch_ms_;
    std::size_t memory_bytes_;
    std::map<dataplane::Node, Cursor> cursors_;
    std::deque<Slice> slices_;  // ascending
    std::int64_t closed_ = kNever, released_ = kNever;
    std::size_t tuples_ = 0;
};

}  // namespace penstock::remote
