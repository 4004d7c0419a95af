// A node's part of a stream: the tuples of each closed batch whose subjects belong to the node's shards, published as
// slices (Wukong+S §4.1; ADR 16).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "store/sharding.hpp"
#include "stream/slice.hpp"
#include "stream/slice_ring.hpp"

namespace penstock::remote {

/// One writer.
class PartPublisher {
public:
    /// `own` are the numbers of the node's shards, of `shards` in all. Creates the file. LimitError if slices would
    /// take more than `memory_bytes` (0: no limit). StorageError.
    PartPublisher(const std::string& path, std::uint32_t stream, std::int64_t batch_ms, std::size_t shards,
                  std::span<const std::uint32_t> own, std::size_t memory_bytes);

    /// Publishes those of a batch's tuples that belong to the node's shards. The tuples are in the order (event time,
    /// arrival). Batches ascend from call to call.
    void publish(std::int64_t batch, std::span<const std::int64_t> ts, std::span<const TermId> s,
                 std::span<const TermId> o, std::span<const Label> label);
    /// Recycles the slices of batches up to and including `batch`.
    void release(std::int64_t batch);

    std::size_t live() const { return live_.size(); }
    std::size_t held_bytes() const { return ring_.held_bytes(); }

private:
    struct Live {
        std::int64_t batch;
        std::uint32_t segment;
        std::size_t bytes;
    };
    SliceRing ring_;
    std::size_t memory_bytes_;
    std::vector<bool> own_;  // by shard
    std::deque<Live> live_;
    std::int64_t last_ = kNever;
};

}  // namespace penstock::remote
