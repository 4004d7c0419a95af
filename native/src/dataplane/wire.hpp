// The protocol between an engine and a node's data-plane server over TCP. Frames: a FrameHeader, then the body.
//
//   engine                          node
//   Hello {magic, version, nonce} ▶
//                                 ◀ Challenge {magic, version, nonce}
//   Proof {HMAC}                  ▶                                        nothing else is answered before
//                                 ◀ Welcome {HMAC, limits, incarnation}
//   List                          ▶
//                                 ◀ Regions {the directory}
//   Read {offset, region, length} × n  ▶
//                                 ◀ Data {the bytes, one read behind the other}
//   Join {RdmaEndpoint}           ▶                                        where the Welcome offers RDMA
//                                 ◀ Joined {RdmaEndpoint}                  until this connection ends
//   ListKeys {region}             ▶
//                                 ◀ Keys {RdmaSegment × n, or why there are none}
//
// Requests can be pipelined. Answers are in the order of the requests. A Failure can take the place of an answer. The
// fault Retired concerns only this request. After any other fault, the node closes the connection. Numbers are
// little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "dataplane/plane.hpp"
#include "dataplane/rdma.hpp"
#include "dataplane/sha256.hpp"

namespace penstock::dataplane::wire {

static_assert(std::endian::native == std::endian::little, "structures are sent as they lie in memory");

inline constexpr std::uint64_t kMagic = 0x314E4C50534E4550ull;  // "PENSPLN1"
inline constexpr std::uint32_t kVersion = 1;

enum class Message : std::uint16_t {
    Hello = 1,
    Challenge,
    Proof,
    Welcome,
    Failure,
    List,
    Regions,
    Read,
    Data,
    Join,
    Joined,
    ListKeys,
    Keys,
};

struct FrameHeader {
    std::uint32_t body_bytes;
    Message message;
    std::uint16_t zero;
};

/// Hello and Challenge.
struct Greeting {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t zero;
    Digest nonce;
};

struct Welcome {
    Digest proof;
    Digest machine;             // equal if both sides run on one machine since its boot
    std::uint64_t incarnation;  // of the server: region numbers are valid within one incarnation
    std::uint64_t reply_bytes;  // the maximum that one Read frame may request
    std::uint32_t reads;        // the maximum per frame
    std::uint32_t rdma;         // 1 if stable regions can be read by RDMA
};

struct ReadItem {
    std::uint64_t offset;
    std::uint32_t number;
    std::uint32_t length;
};

/// An element of the body of Regions. The body has a count (8 bytes), and then for each region a RegionItem and the
/// path of the region.
struct RegionItem {
    std::uint64_t epoch, bytes, reserve_bytes, device, inode;
    std::uint32_t number, kind, subject, stable;
    std::uint32_t path_bytes, zero;
};

struct KeysQuestion {
    std::uint32_t number;
    std::uint32_t zero;
};
/// The beginning of the body of Keys. The segments and then the text follow.
struct KeysHeader {
    std::uint32_t segments;
    std::uint32_t words;  // bytes of text: the reason for the absence of segments
};

static_assert(sizeof(FrameHeader) == 8 && sizeof(Greeting) == 48 && sizeof(Welcome) == 88 && sizeof(ReadItem) == 16 &&
              sizeof(RegionItem) == 64 && sizeof(RdmaEndpoint) == 32 && sizeof(RdmaSegment) == 32);

inline constexpr std::uint32_t kMaxReads = 4096;                      // of a frame
inline constexpr std::uint32_t kMaxReplyBytes = kMaxReadBytes;        // of a frame
inline constexpr std::uint32_t kMaxFailureBytes = 4096;               // a fault (4 bytes) and text
inline constexpr std::uint32_t kMaxRegions = std::uint32_t{1} << 16;  // of a directory
inline constexpr std::uint32_t kMaxPathBytes = 4096;
inline constexpr std::uint32_t kMaxSegments = std::uint32_t{1} << 17;  // of a region
inline constexpr std::uint32_t kMaxDirectoryBytes = std::uint32_t{1} << 26;

// ---- encoding and decoding

inline void append_bytes(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
    const std::size_t at = to.size();
    to.resize(at + bytes.size());
    if (!bytes.empty()) std::memcpy(to.data() + at, bytes.data(), bytes.size());
}
template <class T>
void append(std::vector<std::byte>& to, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append_bytes(to, std::as_bytes(std::span(&value, 1)));
}
inline void append_header(std::vector<std::byte>& to, Message message, std::size_t body_bytes) {
    append(to, FrameHeader{static_cast<std::uint32_t>(body_bytes), message, 0});
}
template <class T>
std::vector<std::byte> frame(Message message, const T& body) {
    static_assert(std::is_trivially_copyable_v<T>);
    const FrameHeader header{sizeof body, message, 0};
    std::vector<std::byte> bytes(sizeof header + sizeof body);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
    return bytes;
}
std::vector<std::byte> failure_frame(Fault fault, std::string_view words);
std::vector<std::byte> regions_frame(std::span<const RegionEntry> entries);
std::vector<std::byte> keys_frame(std::span<const RdmaSegment> segments, std::string_view words);

/// The caller must have checked that enough bytes are left.
template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t offset = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}
Error read_failure(std::span<const std::byte> body);
/// Entries have node 0. Error(Disconnected) if the body is malformed.
std::vector<RegionEntry> read_regions(std::span<const std::byte> body);
/// Error(Refused) with the node's text if there are no segments, Error(Disconnected) if the body is malformed.
std::vector<RdmaSegment> read_keys(std::span<const std::byte> body);

// ---- the proof

enum class Side : std::uint8_t { Engine, Node };

/// One side's proof that it holds the secret. It is bound to both nonces, to the version and to the side, so it can be
/// neither replayed nor reflected to its sender.
Digest proof(std::span<const std::byte> secret, Side side, const Digest& engine_nonce, const Digest& node_nonce);

}  // namespace penstock::dataplane::wire
