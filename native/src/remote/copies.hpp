// What one operation has copied from regions on other nodes, and what it found missing: the operation walks as far as
// what it has leads, all that it misses is then read at once, and it walks again (Wukong §5: batched one-sided READs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/plane.hpp"

namespace penstock::remote {

/// Does a batch of reads; waits for all.
using Reader = std::function<void(std::span<const dataplane::Read>)>;

/// One thread. Copies stay where they are until the object goes.
class Copies {
public:
    /// More than this is not copied in one operation: LimitError.
    static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32;

    struct Range {
        std::uint64_t key = 0;  // shard and offset; 0 = none: a region begins with its header
        std::uint64_t bytes = 0;
        const std::byte* data = nullptr;
        std::size_t wanted = 0;  // while bytes = 0: its place among what is wanted
    };
    static constexpr std::uint64_t key_of(std::uint32_t shard, std::uint64_t offset) {
        return std::uint64_t{shard} << 44 | offset;
    }

    explicit Copies(const Reader& reader) : reader_(reader) {}

    /// The copy that begins there, nullptr where there is none.
    const Range* find(std::uint64_t key) const;
    /// Asks for a range with the next fetch(). A longer one takes the place of a shorter one.
    void want(std::uint64_t key, dataplane::RegionId region, std::uint64_t offset, std::uint64_t bytes);
    /// Reads to the caller's own memory with the next fetch().
    void also(const dataplane::Read& read) { reads_.push_back(read); }
    /// Reads everything that was asked for since the last time. dataplane::Error.
    void fetch();
    std::uint64_t rounds() const { return rounds_; }

private:
    struct Wanted {
        std::uint64_t key;
        dataplane::RegionId region;
        std::uint64_t offset, bytes;
    };
    Range& slot(std::uint64_t key);
    void reserve(std::size_t more);
    std::byte* allocate(std::uint64_t bytes);

    const Reader& reader_;
    std::vector<Range> table_;  // open addressing; bytes = 0: wanted, not there yet
    std::size_t used_ = 0;
    std::vector<Wanted> wanted_;
    std::vector<dataplane::Read> reads_;  // of the next fetch(): the caller's own, until then
    std::vector<std::unique_ptr<std::byte[]>> arena_;
    std::uint64_t arena_left_ = 0, copied_ = 0, rounds_ = 0;
    std::byte* arena_at_ = nullptr;
};

}  // namespace penstock::remote
