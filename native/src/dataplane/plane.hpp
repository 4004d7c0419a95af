// The data plane: one-sided reads of shards and slices in other processes and on other nodes (ADR 15; Wukong §5:
// one-sided READs bypass the remote processor). A region is a file with one writer and any number of readers; a read
// copies a range of it. Implementations: local (mapped files), TCP, RDMA.
//
// Guarantees of a read. The bytes are those of the region at some time between post() and the return of wait(). Each
// aligned 8-byte word is copied whole, in one load. There is *no order* between words of one read, nor between reads
// that are posted together. A reader that requires an order (sequence words, reclaim counts, published lengths:
// docs/store-layout.md) must wait for the first read before it posts the second. Suppose that a read is posted after
// the wait() of a first read has returned. The second read then sees everything that the writer had published before
// the data that the first read saw.
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

/// Identifies one incarnation of one region. A node never reuses a number, and a restarted node uses other numbers.
struct RegionId {
    Node node = 0;
    std::uint32_t number = 0;
    auto operator<=>(const RegionId&) const = default;
};

/// `offset` and `length` are multiples of 8. `length` is from 8 to kMaxReadBytes. wait() fills `into`. The plane owns
/// the buffer until wait() returns, even if another read of the batch has failed.
struct Read {
    RegionId region;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::byte* into = nullptr;
};
inline constexpr std::uint32_t kMaxReadBytes = std::uint32_t{1} << 26;

enum class RegionKind : std::uint32_t { Shard = 1, Other = 2 };

/// Describes a region that a node serves; a directory is a list of these.
struct RegionEntry {
    RegionId id;
    RegionKind kind = RegionKind::Other;
    std::uint32_t subject = 0;        // number of the shard or stream
    std::uint64_t epoch = 0;          // of a shard: as in its header; otherwise chosen by the owner
    std::uint64_t bytes = 0;          // readable at the time of the directory request; only grows
    std::uint64_t reserve_bytes = 0;  // the maximum that it can grow to
    std::uint64_t device = 0;         // of the file, with its inode: identify the file behind `path`
    std::uint64_t inode = 0;
    std::string path;     // on the owner's machine
    bool stable = false;  // pages are never freed, so memory that is registered once stays the region's memory
};

/// Why a batch failed. Because of a fault, only one evaluation fails. The plane remains usable and connects again by
/// itself.
enum class Fault : std::uint8_t {
    Disconnected = 1,  // the node is unreachable, or the connection was lost
    TimedOut,          // no answer in time
    OutOfRange,        // beyond the region's present end: an offset from recycled memory, or an error
    Retired,           // the region no longer exists: request the directory again
    Refused,           // the key is wrong, a limit is reached, or the protocol version differs
    Behind,            // the data is older than requested: never sent, raised by the reader
};
std::string_view name_of(Fault fault);

struct Error : DataPlaneError {
    Error(Fault why, const std::string& message) : DataPlaneError(message), fault(why) {}
    Fault fault;
};

/// Not thread-safe. The destructor, or a failure in wait(), ends all posted reads: no buffer is written afterwards.
class Plane {
public:
    using Ticket = std::uint64_t;

    virtual ~Plane() = default;
    Plane() = default;
    Plane(const Plane&) = delete;
    Plane& operator=(const Plane&) = delete;

    /// The regions that the node serves now. Error.
    virtual std::vector<RegionEntry> directory(Node node) = 0;

    /// Starts all reads and returns. Blocks only at the limit on bytes in flight. `reads` itself need not outlive the
    /// call. Several batches can be in flight at the same time. The caller can wait for them in any order.
    virtual Ticket post(std::span<const Read> reads) = 0;
    /// Returns when all reads of the batch are complete. Error if one read has failed. The contents of `into` are then
    /// undefined for all reads of the batch.
    virtual void wait(Ticket ticket) = 0;
    void read(std::span<const Read> reads) { wait(post(reads)); }

    /// The first byte of the region if it is mapped into this process; otherwise nullptr. Valid up to the `bytes` of
    /// the directory entry, for the lifetime of the plane and the region.
    virtual const std::byte* mapped(RegionId) { return nullptr; }
    /// "shm", "tcp" or "rdma": the transport of reads of that node.
    virtual std::string_view transport(Node node) const = 0;
    /// The reason why some reads of that node use another transport. Empty if all reads use the same transport.
    virtual std::string remark(Node) const { return {}; }
};

/// Throws OutOfRange if a read does not consist of whole words or is too long.
void check_shape(const Read& read);

}  // namespace penstock::dataplane
