// A node's part of a stream: of each closed batch the tuples whose subjects lie in its shards, published as slices
// (Wukong+S §4.1; ADR 16).
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
    /// `own` are numbers of shards, of `shards` in all. The file is there at once. LimitError where slices would take
    /// more than `memory_bytes` (0: no limit). StorageError.
    PartPublisher(const std::string& path, std::uint32_t stream, std::int64_t batch_ms, std::size_t shards,
                  std::span<const std::uint32_t> own, std::size_t memory_bytes);

    /// A batch's tuples in the order (event time, arrival), of which those that belong here are published. Batches come
    /// in ascending order.
    void publish(std::int64_t batch, std::span<const std::int64_t> ts, std::span<const TermId> s,
                 std::span<const TermId> o, std::span<const Label> label);
    /// Slices of batches up to and including this one are recycled.
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
