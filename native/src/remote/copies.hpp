// The data that one operation has copied from regions on other nodes, and the ranges that are still missing. An
// operation traverses the copies until it needs a missing range. It fetches all missing ranges in one batch, and then
// traverses again (Wukong §5: batched one-sided READs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/plane.hpp"

namespace penstock::remote {

/// Performs a batch of reads and returns when all are complete.
using Reader = std::function<void(std::span<const dataplane::Read>)>;

/// Not thread-safe. Copies do not move until the object is destroyed.
class Copies {
public:
    /// The maximum number of bytes that one operation copies. LimitError if an operation needs more.
    static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32;

    struct Range {
        std::uint64_t key = 0;  // shard and offset; 0 = none, since the header is at offset 0
        std::uint64_t bytes = 0;
        const std::byte* data = nullptr;
        std::size_t missing = 0;  // while bytes = 0: index in the list of missing ranges
    };
    static constexpr std::uint64_t key_of(std::uint32_t shard, std::uint64_t offset) {
        return std::uint64_t{shard} << 44 | offset;
    }

    explicit Copies(const Reader& reader) : reader_(reader) {}

    /// The copy that begins at `key`; nullptr if there is none.
    const Range* find(std::uint64_t key) const;
    /// Requests a range for the next fetch(). A longer request replaces a shorter one.
    void request(std::uint64_t key, dataplane::RegionId region, std::uint64_t offset, std::uint64_t bytes);
    /// Adds a read into the caller's own memory to the next fetch().
    void also(const dataplane::Read& read) { reads_.push_back(read); }
    /// Reads all ranges requested since the last fetch. dataplane::Error.
    void fetch();
    std::uint64_t rounds() const { return rounds_; }

private:
    struct MissingRange {
        std::uint64_t key;
        dataplane::RegionId region;
        std::uint64_t offset, bytes;
    };
    Range& slot(std::uint64_t key);
    void reserve(std::size_t more);
    std::byte* allocate(std::uint64_t bytes);

    const Reader& reader_;
    std::vector<Range> table_;  // open addressing; bytes = 0: requested, not fetched yet
    std::size_t used_ = 0;
    std::vector<MissingRange> missing_;
    std::vector<dataplane::Read> reads_;  // of the next fetch(); until then only the caller's own
    std::vector<std::unique_ptr<std::byte[]>> arena_;
    std::uint64_t arena_left_ = 0, copied_ = 0, rounds_ = 0;
    std::byte* arena_at_ = nullptr;
};

}  // namespace penstock::remote
