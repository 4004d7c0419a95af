#include "dataplane/tcp_plane.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataplane/tcp_server.hpp"

namespace penstock::dataplane {

using wire::FrameHeader;
using wire::Message;

namespace {

constexpr std::size_t kInput = std::size_t{256} << 10;
// Reads of this size or more are received directly into the caller's buffer.
constexpr std::uint32_t kDirect = std::uint32_t{16} << 10;
constexpr std::uint64_t kReadCost = sizeof(wire::ReadItem) + 16;  // memory of a read in flight, besides its bytes
constexpr Message kNone{0};
constexpr Plane::Ticket kQuestion = 0;  // the ticket of requests that are not batches of reads

}  // namespace

TcpPlane::TcpPlane(Node node, Address address, TcpOptions options)
    : node_(node), address_(std::move(address)), options_(std::move(options)), input_(kInput) {}

TcpPlane::~TcpPlane() = default;

// ---- connecting

void TcpPlane::connect() {
    if (channel_) return;
    const auto now = Clock::now();
    if (now < retry_at_) throw Error(Fault::Disconnected, address_.text() + " could not be reached a moment ago");
    retry_at_ = now + options_.retry_pause;
    const auto deadline = now + options_.connect_timeout;
    Descriptor socket = connect_to(address_, deadline);
    auto tls = options_.tls ? options_.tls->connect(socket, address_.host) : nullptr;
    Channel channel(std::move(socket), std::move(tls));
    authenticate(channel, deadline);
    channel_ = std::move(channel);
    retry_at_ = {};
    ++connections_;
}

namespace {

std::vector<std::byte> receive_frame(Channel& channel, Message expected, std::size_t bytes,
                                     Clock::time_point deadline) {
    FrameHeader header{};
    channel.receive_all(std::as_writable_bytes(std::span(&header, 1)), deadline);
    if (header.message == Message::Failure && header.body_bytes <= wire::kMaxFailureBytes) {
        std::vector<std::byte> body(header.body_bytes);
        channel.receive_all(body, deadline);
        throw wire::read_failure(body);
    }
    if (header.message != expected || header.body_bytes != bytes)
        throw Error(Fault::Refused, "what answers there is no data plane of Penstock");
    std::vector<std::byte> body(bytes);
    channel.receive_all(body, deadline);
    return body;
}

}  // namespace

void TcpPlane::authenticate(Channel& channel, Clock::time_point deadline) {
    channel.shake_hands(deadline);
    const wire::Greeting hello{wire::kMagic, wire::kVersion, 0, random_digest()};
    channel.send_all(wire::frame(Message::Hello, hello), deadline);
    const auto challenge =
        wire::value_at<wire::Greeting>(receive_frame(channel, Message::Challenge, sizeof(wire::Greeting), deadline));
    if (challenge.magic != wire::kMagic || challenge.version != wire::kVersion)
        throw Error(Fault::Refused, "the node speaks another version of the data plane");
    const auto prove = [&](wire::Side side) {
        return wire::proof(options_.secret, side, hello.nonce, challenge.nonce);
    };
    channel.send_all(wire::frame(Message::Proof, prove(wire::Side::Engine)), deadline);
    const auto welcome =
        wire::value_at<wire::Welcome>(receive_frame(channel, Message::Welcome, sizeof(wire::Welcome), deadline));
    if (!equal(welcome.proof, prove(wire::Side::Node)))
        throw Error(Fault::Refused, "what answers at " + address_.text() + " does not know the secret");
    if (welcome.reads == 0 || welcome.reply_bytes < kMaxReadBytes)
        throw Error(Fault::Refused, "the node allows smaller reads than this version needs");
    if (welcome.incarnation != welcome_.incarnation) regions_.clear();
    welcome_ = welcome;
}

bool TcpPlane::is_on_this_machine() {
    connect();
    return welcome_.machine != Digest{} && equal(welcome_.machine, machine_identity());
}

std::vector<RegionEntry> TcpPlane::directory(Node node) {
    if (node != node_) throw Error(Fault::Refused, "this plane leads to another node");
    std::vector<RegionEntry> entries = wire::read_regions(ask(Message::List, {}, Message::Regions));
    regions_.clear();
    for (RegionEntry& entry : entries) {
        entry.id.node = node_;
        regions_[entry.id.number] = {entry.bytes};
    }
    return entries;
}

std::uint64_t TcpPlane::connection() {
    connect();
    return connections_;
}

std::vector<std::byte> TcpPlane::ask(Message question, std::span<const std::byte> body, Message answer) {
    connect();
    answered_.reset();
    wire::append_header(output_, question, body.size());
    wire::append_bytes(output_, body);
    requests_.push_back({kQuestion, 0, 0, 0, answer});
    batches_[kQuestion] = {1, std::nullopt};
    const auto deadline = Clock::now() + options_.read_timeout;
    while (!answered_ && !batches_.at(kQuestion).error) progress(deadline);
    const auto asked = batches_.extract(kQuestion);
    if (asked.mapped().error) throw *asked.mapped().error;
    return *std::exchange(answered_, std::nullopt);
}

// ---- requests

bool TcpPlane::is_within(const Read& read) const {
    const auto known = regions_.find(read.region.number);
    if (known == regions_.end() || read.region.node != node_)
        throw Error(Fault::Retired, "no region " + std::to_string(read.region.number) + " of node " +
                                        std::to_string(read.region.node) + " is known here");
    const std::uint64_t bytes = known->second.bytes;
    return read.offset <= bytes && read.length <= bytes - read.offset;
}

/// Rejects what would make the node close the connection. A region may have grown since the last directory.
void TcpPlane::check(std::span<const Read> reads) {
    bool refreshed = false;
    for (const Read& read : reads) {
        check_shape(read);
        if (is_within(read)) continue;
        if (!std::exchange(refreshed, true)) directory(node_);
        if (!is_within(read))
            throw Error(Fault::OutOfRange, "a read beyond the end of region " + std::to_string(read.region.number));
    }
}

Plane::Ticket TcpPlane::post(std::span<const Read> reads) {
    connect();
    check(reads);
    if (batches_.size() >= options_.batches) throw Error(Fault::Refused, "too many batches are not waited for");
    const Ticket ticket = ++last_ticket_;
    batches_.emplace(ticket, Batch{0, std::nullopt});
    try {
        for (std::size_t begin = 0; begin < reads.size();) {
            std::size_t end = begin;
            std::uint64_t bytes = 0;
            while (end < reads.size() && end - begin < welcome_.reads && bytes + reads[end].length <= kMaxReadBytes)
                bytes += reads[end++].length;
            make_room(bytes);
            if (batches_.at(ticket).error) break;  // an earlier part was rejected meanwhile
            request(ticket, reads.subspan(begin, end - begin), bytes);
            begin = end;
        }
        send_requests();
    } catch (const Error&) {
        batches_.erase(ticket);
        throw;
    }
    return ticket;
}

void TcpPlane::make_room(std::uint64_t bytes) {
    const auto deadline = Clock::now() + options_.read_timeout;
    while (in_flight_ > 0 && in_flight_ + bytes > options_.bytes_in_flight) progress(deadline);
}

void TcpPlane::request(Ticket ticket, std::span<const Read> reads, std::uint64_t bytes) {
    wire::append_header(output_, Message::Read, sizeof(std::uint64_t) + reads.size() * sizeof(wire::ReadItem));
    wire::append(output_, std::uint64_t{reads.size()});
    const std::size_t at = output_.size();
    output_.resize(at + reads.size() * sizeof(wire::ReadItem));
    std::byte* to = output_.data() + at;
    for (const Read& read : reads) {
        const wire::ReadItem item{read.offset, read.region.number, read.length};
        std::memcpy(to, &item, sizeof item);
        to += sizeof item;
        expected_.push_back({read.into, read.length});
    }
    const std::uint64_t cost = bytes + reads.size() * kReadCost;
    requests_.push_back({ticket, static_cast<std::uint32_t>(reads.size()), bytes, cost, Message::Data});
    ++batches_.at(ticket).requests;
    in_flight_ += cost;
}

void TcpPlane::wait(Ticket ticket) {
    const auto batch = batches_.find(ticket);
    if (batch == batches_.end()) throw Error(Fault::Refused, "no such batch is posted");
    const auto deadline = Clock::now() + options_.read_timeout;
    try {
        while (batch->second.requests > 0 && !batch->second.error) progress(deadline);
    } catch (const Error&) {
        batches_.erase(batch);
        throw;
    }
    const std::optional<Error> error = std::move(batch->second.error);
    batches_.erase(batch);
    if (error) throw *error;
}

// ---- moving bytes

/// Sends and receives what is possible; if nothing is, waits until something is.
void TcpPlane::progress(Clock::time_point deadline) {
    if (Clock::now() > deadline) late();
    const bool sent = send_requests();
    if (receive_answers() || sent) return;
    const bool sending = output_begin_ < output_.size() || channel_.has_unsent();
    const auto sleep = [&] {
        if (!wait_for(channel_.socket(), static_cast<short>(POLLIN | (sending ? POLLOUT : 0)), deadline)) late();
    };
    if (sending)
        sleep();
    else
        awake_.wait([this] { return receive_answers(); }, sleep);
}

bool TcpPlane::send_requests() {
    if (output_begin_ == output_.size() && !channel_.has_unsent()) return false;
    std::size_t moved = 0;
    const Moved how = channel_.send(std::span(output_).subspan(output_begin_), moved);
    if (how == Moved::Ended) {
        receive_answers();  // the node may have sent the reason
        hung_up();
    }
    output_begin_ += moved;
    if (output_begin_ == output_.size()) {
        output_.clear();
        output_begin_ = 0;
    }
    return moved > 0;
}

bool TcpPlane::receive_answers() {
    if (input_begin_ == input_end_) input_begin_ = input_end_ = 0;
    const auto space = std::span(input_).subspan(input_end_);
    std::size_t moved = 0;
    const bool direct = answer_.message == Message::Data && input_end_ == 0 && !expected_.empty() &&
                        expected_.front().length >= kDirect && expected_.front().into != nullptr;
    if (!direct) {
        const Moved how = channel_.receive(space, moved);
        if (how == Moved::Ended) hung_up();
        input_end_ += moved;
    } else {
        Expected& first = expected_.front();
        const Moved how = channel_.receive({first.into, first.length}, space, moved);
        if (how == Moved::Ended) hung_up();
        const auto placed = static_cast<std::uint32_t>(std::min<std::size_t>(moved, first.length));
        input_end_ = moved - placed;
        first.into += placed;
        first.length -= placed;
        answer_left_ -= placed;
        if (first.length == 0) expected_.pop_front();
        if (answer_left_ == 0) end_answer();
    }
    take_answers();
    return moved > 0;
}

void TcpPlane::take_answers() {
    while (input_begin_ < input_end_) {
        const auto input = std::span<const std::byte>(input_).subspan(input_begin_, input_end_ - input_begin_);
        if (answer_.message == kNone) {
            if (input.size() < sizeof(FrameHeader)) break;
            begin_answer();
            continue;
        }
        if (answer_.message == Message::Data) {
            input_begin_ += take_data(input);
        } else {
            const std::size_t n = std::min<std::uint64_t>(input.size(), answer_left_);
            wire::append_bytes(control_, input.first(n));
            answer_left_ -= n;
            input_begin_ += n;
        }
        if (answer_left_ == 0) end_answer();
    }
    // Moves a partial header to the front, where there is room for the rest.
    if (input_begin_ > 0) {
        std::memmove(input_.data(), input_.data() + input_begin_, input_end_ - input_begin_);
        input_end_ -= input_begin_;
        input_begin_ = 0;
    }
}

void TcpPlane::begin_answer() {
    answer_ = wire::value_at<FrameHeader>(input_, input_begin_);
    answer_left_ = answer_.body_bytes;
    input_begin_ += sizeof(FrameHeader);
    const Request* first = requests_.empty() ? nullptr : &requests_.front();
    const bool is_answer = first != nullptr && answer_.message == first->answer;
    const bool fits = (is_answer && answer_.message == Message::Data && answer_left_ == first->bytes) ||
                      (is_answer && answer_.message != Message::Data && answer_left_ <= wire::kMaxDirectoryBytes) ||
                      (answer_.message == Message::Failure && answer_left_ <= wire::kMaxFailureBytes);
    if (!fits) fail_all(Error(Fault::Disconnected, address_.text() + " answers what was not asked"));
    if (answer_left_ == 0) end_answer();
}

std::size_t TcpPlane::take_data(std::span<const std::byte> bytes) {
    const std::size_t all = bytes.size();
    while (!bytes.empty() && answer_left_ > 0) {
        Expected& first = expected_.front();
        const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), first.length));
        if (first.into != nullptr) {
            std::memcpy(first.into, bytes.data(), n);
            first.into += n;
        }
        first.length -= n;
        answer_left_ -= n;
        bytes = bytes.subspan(n);
        if (first.length == 0) expected_.pop_front();
    }
    return all - bytes.size();
}

void TcpPlane::end_answer() {
    const FrameHeader answer = std::exchange(answer_, {});
    if (answer.message == Message::Failure) return take_failure();
    const Request done = requests_.front();
    requests_.pop_front();
    in_flight_ -= done.cost;
    if (answer.message != Message::Data) answered_ = std::exchange(control_, {});
    const auto batch = batches_.find(done.ticket);
    if (batch != batches_.end()) --batch->second.requests;
}

void TcpPlane::take_failure() {
    const std::vector<std::byte> body = std::exchange(control_, {});
    const Error error = wire::read_failure(body);
    if (error.fault != Fault::Retired || requests_.empty()) fail_all(error);
    fail_first(error);
}

/// Fails the batch of the first request. Its bytes in flight are discarded on arrival, because its buffers belong to
/// the caller again.
void TcpPlane::fail_first(const Error& error) {
    const Request failed = requests_.front();
    requests_.pop_front();
    expected_.erase(expected_.begin(), expected_.begin() + failed.reads);
    in_flight_ -= failed.cost;
    auto read = expected_.begin();
    for (const Request& request : requests_) {
        const auto end = read + request.reads;
        if (request.ticket == failed.ticket && failed.reads > 0)
            std::for_each(read, end, [](Expected& expected) { expected.into = nullptr; });
        read = end;
    }
    const auto batch = batches_.find(failed.ticket);
    if (batch != batches_.end()) batch->second.error = error;
}

void TcpPlane::hang_up() { drop_all(Error(Fault::Disconnected, "the connection was given up")); }

void TcpPlane::fail_all(const Error& error) {
    drop_all(error);
    throw error;
}

/// Fails every incomplete batch.
void TcpPlane::drop_all(const Error& error) {
    channel_.close();
    requests_.clear();
    expected_.clear();
    output_.clear();
    control_.clear();
    in_flight_ = 0;
    output_begin_ = input_begin_ = input_end_ = 0;
    answer_ = {};
    answered_.reset();
    for (auto& [ticket, batch] : batches_)
        if (batch.requests > 0 && !batch.error) batch.error = error;
}

void TcpPlane::late() { fail_all(Error(Fault::TimedOut, address_.text() + " did not answer in time")); }

void TcpPlane::hung_up() {
    if (const std::string why = channel_.failure(); !why.empty())
        fail_all(Error(Fault::Disconnected, address_.text() + ": TLS: " + why));
    fail_all(Error(Fault::Disconnected, address_.text() + " has closed the connection"));
}

}  // namespace penstock::dataplane
