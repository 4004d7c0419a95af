#ifdef PENSTOCK_RDMA

#include "dataplane/rdma_plane.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace penstock::dataplane {

using wire::Message;

namespace {

constexpr int kEmptyPolls = 64;  // before the thread yields its processor
// A killed node's TCP connection closes at once, but its queue pair shows that seconds later, or never.
constexpr auto kLook = std::chrono::milliseconds(1);

RdmaEndpoint read_endpoint(const std::vector<std::byte>& body) {
    if (body.size() != sizeof(RdmaEndpoint)) throw Error(Fault::Disconnected, "the node's endpoint cannot be read");
    return wire::value_at<RdmaEndpoint>(body);
}

}  // namespace

std::unique_ptr<Plane> make_rdma_plane(std::unique_ptr<TcpPlane> control, const std::string& device) {
    return std::make_unique<RdmaPlane>(std::move(control), device);
}

RdmaPlane::RdmaPlane(std::unique_ptr<TcpPlane> control, const std::string& device)
    : control_(std::move(control)), device_(RdmaDevice::open(device)) {}

/// Negotiates a queue pair if there is none, or if the connection that it belonged to has ended.
void RdmaPlane::join() {
    if (control_->connection() == connection_ && reader_) return;
    drop_reader(Error(Fault::Disconnected, "the connection to the node was lost"));
    if (!control_->offers_rdma()) throw Error(Fault::Refused, "no RDMA: the node offers none");
    if (incarnation_ != control_->incarnation()) regions_.clear();
    incarnation_ = control_->incarnation();
    auto reader = std::make_unique<RdmaReader>(device_);
    const RdmaEndpoint ours = reader->endpoint();
    reader->connect(read_endpoint(control_->ask(Message::Join, std::as_bytes(std::span(&ours, 1)), Message::Joined)));
    reader_ = std::move(reader);
    connection_ = control_->connection();
}

std::vector<RegionEntry> RdmaPlane::directory(Node node) {
    join();
    std::vector<RegionEntry> entries = control_->directory(node);
    std::unordered_map<std::uint32_t, Region> regions;
    for (const RegionEntry& entry : entries) {
        const auto known = regions_.find(entry.id.number);
        Region& region = regions[entry.id.number];
        if (known != regions_.end()) region = std::move(known->second);
        region.by_tcp = !entry.stable;
        if (entry.stable && region.end() < entry.bytes) fetch_keys(entry.id.number, region);
    }
    regions_ = std::move(regions);
    return entries;
}

/// A region that the node cannot register, or not up to its present size, is read over TCP.
void RdmaPlane::fetch_keys(std::uint32_t number, Region& region) {
    const wire::KeysQuestion question{number, 0};
    const auto body = control_->ask(Message::ListKeys, std::as_bytes(std::span(&question, 1)), Message::Keys);
    try {
        region.segments = wire::read_keys(body);
    } catch (const Error& error) {
        if (error.fault != Fault::Refused) throw;
        region.by_tcp = true;
        remark_ = error.what();
    }
}

// ---- posting

/// The region of a read, with keys for all of it: it may have grown since the keys were requested.
const RdmaPlane::Region& RdmaPlane::find(const Read& read) {
    check_shape(read);
    const auto found = regions_.find(read.region.number);
    if (found == regions_.end() || read.region.node != control_->node())
        throw Error(Fault::Retired, "no region " + std::to_string(read.region.number) + " of node " +
                                        std::to_string(read.region.node) + " is known here");
    Region& region = found->second;
    const auto within = [&] { return read.offset <= region.end() && read.length <= region.end() - read.offset; };
    if (region.by_tcp || within()) return region;
    fetch_keys(read.region.number, region);
    if (!region.by_tcp && !within())
        throw Error(Fault::OutOfRange, "a read beyond the end of region " + std::to_string(read.region.number));
    return region;
}

/// Splits a read so that each READ is within one registration.
void RdmaPlane::cut(Ticket ticket, const Region& region, const Read& read, Batch& batch) {
    std::uint64_t offset = read.offset;
    const std::uint64_t end = read.offset + read.length;
    auto segment = std::upper_bound(region.segments.begin(), region.segments.end(), offset,
                                    [](std::uint64_t at, const RdmaSegment& s) { return at < s.end; });
    for (std::byte* into = read.into; offset < end; ++batch.left) {
        if (offset == segment->end) ++segment;
        const auto length = static_cast<std::uint32_t>(
            std::min<std::uint64_t>({end - offset, segment->end - offset, RdmaReader::kPieceBytes}));
        waiting_.push_back({ticket, segment->address + (offset - segment->begin), segment->key, length, into});
        offset += length;
        into += length;
    }
}

Plane::Ticket RdmaPlane::post(std::span<const Read> reads) {
    join();
    if (batches_.size() >= control_->options().batches)
        throw Error(Fault::Refused, "too many batches are not waited for");
    std::vector<Read> by_tcp;
    std::vector<const Region*> regions;  // of each read; null if it is read over TCP
    for (const Read& read : reads) {
        const Region& region = find(read);
        regions.push_back(region.by_tcp ? nullptr : &region);
        if (region.by_tcp) by_tcp.push_back(read);
    }
    if (control_->connection() != connection_)  // requesting keys may have reconnected
        throw Error(Fault::Disconnected, "the connection to the node was lost");
    Batch batch;
    if (!by_tcp.empty()) {
        batch.tcp = control_->post(by_tcp);
        batch.has_tcp = true;
    }
    const Ticket ticket = ++last_ticket_;
    for (std::size_t i = 0; i < reads.size(); ++i)
        if (regions[i] != nullptr) cut(ticket, *regions[i], reads[i], batch);
    batches_.emplace(ticket, std::move(batch));
    progress();
    return ticket;
}

// ---- waiting

/// Posts as much as there is room for, and processes completions.
void RdmaPlane::progress() {
    if (!reader_) return;
    try {
        reader_->poll([&](std::uint64_t ticket) { --batches_.at(ticket).left; });
        const auto rest = std::span<const RdmaPiece>(waiting_).subspan(waiting_begin_);
        waiting_begin_ += reader_->post(rest);
        if (waiting_begin_ == waiting_.size()) {
            waiting_.clear();
            waiting_begin_ = 0;
        }
    } catch (const Error& error) {
        if (error.fault == Fault::Retired) regions_.clear();  // and the caller must request the directory
        fail_all(error);
    }
}

void RdmaPlane::fail_all(const Error& error) {
    drop_reader(error);
    control_->hang_up();
}

/// Destroys the queue pair, and with it every READ in flight.
void RdmaPlane::drop_reader(const Error& error) {
    reader_.reset();
    waiting_.clear();
    waiting_begin_ = 0;
    for (auto& [ticket, batch] : batches_)
        if (batch.left > 0 && !batch.error) batch.error = error;
}

void RdmaPlane::wait(Ticket ticket) {
    const auto found = batches_.find(ticket);
    if (found == batches_.end()) throw Error(Fault::Refused, "no such batch is posted");
    Batch& batch = found->second;
    const auto deadline = Clock::now() + control_->options().read_timeout;
    auto look_at = Clock::now() + kLook;
    for (int polls = 1; batch.left > 0 && !batch.error; ++polls) {
        progress();
        if (polls % kEmptyPolls != 0) continue;
        std::this_thread::yield();
        const auto now = Clock::now();
        if (now > deadline) fail_all(Error(Fault::TimedOut, "the node's memory could not be read in time"));
        if (now < look_at) continue;
        look_at = now + kLook;
        if (control_->has_node_hung_up()) fail_all(Error(Fault::Disconnected, "the node is gone"));
    }
    const Batch done = std::move(batch);
    batches_.erase(found);
    if (done.has_tcp) {
        try {
            control_->wait(done.tcp);
        } catch (const Error&) {
            if (!done.error) throw;
        }
    }
    if (done.error) throw *done.error;
}

}  // namespace penstock::dataplane

#endif
