// The data plane: what an engine reads shards and slices by, wherever they lie (ADR 15; Wukong §5: one-sided
// READs bypass the other machine's processor). A region is a file that one node writes and everybody reads; a read
// copies a range of it. Implementations: local (mapped files), TCP, RDMA.
//
// What a read promises. Bytes are taken from the region at some time between post() and the return of wait(). Each
// aligned 8-byte word is copied whole, in one load. *No order* holds between words of one read, nor between reads that
// are posted together: who needs "this word before those bytes" (sequence words, reclaim counts, published lengths:
// docs/store-layout.md) waits for the first read before posting the second. A read that is posted after wait() has
// returned sees everything that the writer published before what the first one saw.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "errors.hpp"

namespace penstock::dataplane {

using Node = std::uint32_t;  // numbered by the engine that uses the plane

/// Names one incarnation of one region: a node never gives a number twice, and a node that comes back gives others.
struct RegionId {
    Node node = 0;
    std::uint32_t number = 0;
    auto operator<=>(const RegionId&) const = default;
};

/// `offset` and `length` are multiples of 8, length 8 to kMaxReadBytes. `into` is filled when wait() returns, and
/// belongs to the plane until then, also when another read of the batch has failed.
struct Read {
    RegionId region;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::byte* into = nullptr;
};
inline constexpr std::uint32_t kMaxReadBytes = std::uint32_t{1} << 26;

enum class RegionKind : std::uint32_t { Shard = 1, Slices = 2, Other = 3 };

/// A node's directory has one of these for each region that it lets others read.
struct RegionEntry {
    RegionId id;
    RegionKind kind = RegionKind::Other;
    std::uint32_t subject = 0;        // number of the shard or stream
    std::uint64_t epoch = 0;          // of a shard: as in its header; otherwise the owner's choice
    std::uint64_t bytes = 0;          // readable when the directory was asked for; only grows
    std::uint64_t reserve_bytes = 0;  // what it can grow to
    std::uint64_t device = 0;         // of the file, and its inode: whether a path leads to this very file
    std::uint64_t inode = 0;
    std::string path;     // on the owner's machine
    bool stable = false;  // no page is ever given back, so that memory registered once stays the region's memory
};

/// Why a batch failed. All are failures of one evaluation; the plane can be used again, and connects again by itself.
enum class Fault : std::uint8_t {
    Disconnected = 1,  // the node cannot be reached, or went away meanwhile
    TimedOut,          // it did not answer in time
    OutOfRange,        // beyond the region's present end: an offset met in memory that was recycled, or an error
    Retired,           // the region is no longer there: ask for the directory again
    Refused,           // the key is wrong, a limit is reached, or another version is spoken
    Behind,            // what lies there is older than what is asked for: never sent, found by whoever reads
};
std::string_view name_of(Fault fault);

struct Error : DataPlaneError {
    Error(Fault why, const std::string& message) : DataPlaneError(message), fault(why) {}
    Fault fault;
};

/// One thread at a time. Destroying a plane, or failing in wait(), ends all its posted reads: no buffer is touched
/// afterwards.
class Plane {
public:
    using Ticket = std::uint64_t;

    virtual ~Plane() = default;
    Plane() = default;
    Plane(const Plane&) = delete;
    Plane& operator=(const Plane&) = delete;

    /// What the node lets others read now. Error.
    virtual std::vector<RegionEntry> directory(Node node) = 0;

    /// Starts all reads, and returns without waiting for them unless a limit on bytes in flight is reached. `reads`
    /// itself need not outlive the call. Several batches may be on their way; they may be waited for in any order.
    virtual Ticket post(std::span<const Read> reads) = 0;
    /// Returns when all reads of that batch are done. Error where one failed: then `into` of all of them is undefined.
    virtual void wait(Ticket ticket) = 0;
    void read(std::span<const Read> reads) { wait(post(reads)); }

    /// Where the region's bytes can be read in place (mapped into this process), its first byte; otherwise nullptr.
    /// Valid up to the `bytes` that a directory said, as long as the plane and the region live.
    virtual const std::byte* mapped(RegionId) { return nullptr; }
    /// "shm", "tcp" or "rdma": how reads of that node travel.
    virtual std::string_view transport(Node node) const = 0;
    /// Why some reads of that node travel otherwise; empty where none do.
    virtual std::string remark(Node) const { return {}; }
};

/// Throws OutOfRange where a read is not made of whole words or longer than allowed.
void check_shape(const Read& read);

}  // namespace penstock::dataplane
