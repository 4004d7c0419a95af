#include "dataplane/wire.hpp"

#include <algorithm>
#include <string>

namespace penstock::dataplane::wire {

namespace {

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void not_ours() { throw Error(Fault::Disconnected, "what the node answers cannot be read"); }

}  // namespace

std::vector<std::byte> failure_frame(Fault fault, std::string_view words) {
    words = words.substr(0, kMaxFailureBytes - sizeof(std::uint32_t));
    std::vector<std::byte> bytes;
    append_header(bytes, Message::Failure, sizeof(std::uint32_t) + words.size());
    append(bytes, static_cast<std::uint32_t>(fault));
    append_bytes(bytes, std::as_bytes(std::span(words)));
    return bytes;
}

Error read_failure(std::span<const std::byte> body) {
    if (body.size() < sizeof(std::uint32_t)) return {Fault::Disconnected, "the node failed without saying why"};
    const auto number = value_at<std::uint32_t>(body);
    const bool known = number >= static_cast<std::uint32_t>(Fault::Disconnected) &&
                       number <= static_cast<std::uint32_t>(Fault::Refused);
    return {known ? static_cast<Fault>(number) : Fault::Disconnected, text_of(body.subspan(sizeof number))};
}

std::vector<std::byte> regions_frame(std::span<const RegionEntry> entries) {
    std::vector<std::byte> body;
    append(body, std::uint64_t{entries.size()});
    for (const RegionEntry& entry : entries) {
        append(body, RegionItem{entry.epoch, entry.bytes, entry.reserve_bytes, entry.device, entry.inode,
                                entry.id.number, static_cast<std::uint32_t>(entry.kind), entry.subject,
                                entry.stable ? 1u : 0u, static_cast<std::uint32_t>(entry.path.size()), 0});
        append_bytes(body, std::as_bytes(std::span(entry.path)));
    }
    std::vector<std::byte> bytes;
    append_header(bytes, Message::Regions, body.size());
    append_bytes(bytes, body);
    return bytes;
}

std::vector<RegionEntry> read_regions(std::span<const std::byte> body) {
    if (body.size() < sizeof(std::uint64_t)) not_ours();
    const auto count = value_at<std::uint64_t>(body);
    body = body.subspan(sizeof count);
    if (count > body.size() / sizeof(RegionItem)) not_ours();
    std::vector<RegionEntry> entries;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (body.size() < sizeof(RegionItem)) not_ours();
        const auto item = value_at<RegionItem>(body);
        body = body.subspan(sizeof item);
        if (item.path_bytes > body.size()) not_ours();
        RegionEntry entry;
        entry.id = {0, item.number};
        entry.kind = static_cast<RegionKind>(item.kind);
        entry.subject = item.subject;
        entry.epoch = item.epoch;
        entry.bytes = item.bytes;
        entry.reserve_bytes = item.reserve_bytes;
        entry.device = item.device;
        entry.inode = item.inode;
        entry.path = text_of(body.first(item.path_bytes));
        entry.stable = item.stable != 0;
        entries.push_back(std::move(entry));
        body = body.subspan(item.path_bytes);
    }
    return entries;
}

std::vector<std::byte> keys_frame(std::span<const RdmaSegment> segments, std::string_view words) {
    words = words.substr(0, kMaxFailureBytes);
    std::vector<std::byte> bytes;
    append_header(bytes, Message::Keys, sizeof(KeysHeader) + segments.size_bytes() + words.size());
    append(bytes, KeysHeader{static_cast<std::uint32_t>(segments.size()), static_cast<std::uint32_t>(words.size())});
    append_bytes(bytes, std::as_bytes(segments));
    append_bytes(bytes, std::as_bytes(std::span(words)));
    return bytes;
}

std::vector<RdmaSegment> read_keys(std::span<const std::byte> body) {
    if (body.size() < sizeof(KeysHeader)) not_ours();
    const auto header = value_at<KeysHeader>(body);
    body = body.subspan(sizeof header);
    if (header.segments > kMaxSegments || body.size() != header.segments * sizeof(RdmaSegment) + header.words)
        not_ours();
    if (header.segments == 0) throw Error(Fault::Refused, text_of(body));
    std::vector<RdmaSegment> segments(header.segments);
    std::uint64_t end = 0;  // they are contiguous, from the region's start
    for (std::size_t i = 0; i < segments.size(); ++i) {
        segments[i] = value_at<RdmaSegment>(body, i * sizeof(RdmaSegment));
        if (segments[i].begin != end || segments[i].end <= end) not_ours();
        end = segments[i].end;
    }
    return segments;
}

Digest proof(std::span<const std::byte> secret, Side side, const Digest& engine_nonce, const Digest& node_nonce) {
    struct Bound {
        std::uint64_t magic;
        std::uint32_t version;
        std::uint32_t side;
        Digest engine_nonce, node_nonce;
    };
    const Bound message{kMagic, kVersion, static_cast<std::uint32_t>(side), engine_nonce, node_nonce};
    static_assert(sizeof message == 80, "no byte of it is undefined");
    return hmac_sha256(secret, std::as_bytes(std::span(&message, 1)));
}

}  // namespace penstock::dataplane::wire
