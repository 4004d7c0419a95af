#include "dataplane/session.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::dataplane {

using wire::FrameHeader;
using wire::Message;
using wire::ReadItem;

namespace {

constexpr std::size_t kReadHead = 8;  // of a Read's body: count, zero
constexpr std::size_t kMaxRequest = sizeof(FrameHeader) + kReadHead + wire::kMaxReads * sizeof(ReadItem);
constexpr std::size_t kGreetingBuffer = 256;  // until the peer has authenticated itself
constexpr std::size_t kAnswerBuffer = std::size_t{256} << 10;
// The number of answers whose memory is prefetched: a dependent miss costs ~200 ns (ADR 8).
constexpr std::size_t kAhead = 8;

std::size_t largest_body(Message message) {
    switch (message) {
        case Message::Hello:
            return sizeof(wire::Greeting);
        case Message::Proof:
            return sizeof(Digest);
        case Message::Join:
            return sizeof(RdmaEndpoint);
        case Message::ListKeys:
            return sizeof(wire::KeysQuestion);
        case Message::Read:
            return kMaxRequest - sizeof(FrameHeader);
        default:
            return 0;
    }
}

}  // namespace

Session::Session(const ServedRegions& regions, const NodeIdentity& node)
    : regions_(regions), node_(node), input_(kGreetingBuffer), output_(kGreetingBuffer) {}

std::span<std::byte> Session::space() {
    if (state_ == State::Failed) return {};
    if (input_begin_ == input_end_) input_begin_ = input_end_ = 0;
    if (input_end_ == input_.size() && input_begin_ > 0) {
        std::memmove(input_.data(), input_.data() + input_begin_, input_end_ - input_begin_);
        input_end_ -= input_begin_;
        input_begin_ = 0;
    }
    return std::span(input_).subspan(input_end_);
}

std::span<const std::byte> Session::output() {
    if (output_begin_ == output_end_) output_begin_ = output_end_ = 0;
    while (room() >= 8) {  // an answer takes at least one word
        if (!message_.empty())
            copy_message();
        else if (!answers_.empty())
            copy_answers();
        else if (!take_frame())
            break;
    }
    return std::span(output_).subspan(output_begin_, output_end_ - output_begin_);
}

/// Answers the next request if it has arrived completely.
bool Session::take_frame() {
    const auto input = std::span<const std::byte>(input_).subspan(input_begin_, input_end_ - input_begin_);
    if (state_ == State::Failed || input.size() < sizeof(FrameHeader)) return false;
    const auto header = wire::value_at<FrameHeader>(input);
    if (!is_expected(header.message) || header.zero != 0 || header.body_bytes > largest_body(header.message)) {
        fail(Fault::Refused, authenticated() ? "this is not a request of the data plane" : "not authenticated");
        return true;
    }
    if (input.size() - sizeof header < header.body_bytes) return false;
    input_begin_ += sizeof header + header.body_bytes;
    answer(header.message, input.subspan(sizeof header, header.body_bytes));
    return true;
}

bool Session::is_expected(Message message) const {
    if (state_ == State::Greeting) return message == Message::Hello;
    if (state_ == State::Proving) return message == Message::Proof;
    return message == Message::List || message == Message::Read || message == Message::Join ||
           message == Message::ListKeys;
}

void Session::answer(Message message, std::span<const std::byte> body) {
    switch (message) {
        case Message::Hello:
            return greet(body);
        case Message::Proof:
            return check_proof(body);
        case Message::List:
            message_ = wire::regions_frame(regions_.directory());
            return;
        case Message::Read:
            return begin_reads(body);
        case Message::Join:
            return join(body);
        case Message::ListKeys:
            return list_keys(body);
        default:
            return;  // is_expected() admits no other
    }
}

void Session::greet(std::span<const std::byte> body) {
    if (body.size() != sizeof(wire::Greeting)) return fail(Fault::Refused, "a greeting of another size");
    const auto hello = wire::value_at<wire::Greeting>(body);
    if (hello.magic != wire::kMagic) return fail(Fault::Refused, "this is the data plane of Penstock");
    if (hello.version != wire::kVersion)
        return fail(Fault::Refused, "the node speaks version " + std::to_string(wire::kVersion) +
                                        " of the data plane, not " + std::to_string(hello.version));
    engine_nonce_ = hello.nonce;
    node_nonce_ = random_digest();
    message_ = wire::frame(Message::Challenge, wire::Greeting{wire::kMagic, wire::kVersion, 0, node_nonce_});
    state_ = State::Proving;
}

void Session::check_proof(std::span<const std::byte> body) {
    const Digest expected = wire::proof(node_.secret, wire::Side::Engine, engine_nonce_, node_nonce_);
    if (body.size() != sizeof(Digest) || !equal(wire::value_at<Digest>(body), expected))
        return fail(Fault::Refused, "the node has another secret");
    wire::Welcome welcome{};
    welcome.proof = wire::proof(node_.secret, wire::Side::Node, engine_nonce_, node_nonce_);
    welcome.machine = node_.machine;
    welcome.incarnation = node_.incarnation;
    welcome.reply_bytes = wire::kMaxReplyBytes;
    welcome.reads = wire::kMaxReads;
    welcome.rdma = regions_.rdma() != nullptr ? 1 : 0;
    message_ = wire::frame(Message::Welcome, welcome);
    // The input contains only what was sent too early; all of output_ has been sent or copied.
    input_.resize(kMaxRequest);
    output_.resize(kAnswerBuffer);
    state_ = State::Open;
}

/// Checks everything before the first byte of the answer, so the answer is complete or a Failure.
void Session::begin_reads(std::span<const std::byte> body) {
    std::uint64_t total = 0;
    if (!find_answers(body, total)) {
        answers_.clear();
        table_.reset();
        return;
    }
    counters_.reads += answers_.size();
    counters_.read_bytes += total;
    message_.clear();
    wire::append_header(message_, Message::Data, total);
}

bool Session::find_answers(std::span<const std::byte> body, std::uint64_t& total) {
    const auto refuse = [this](Fault fault, std::string_view words) { return fail(fault, words), false; };
    if (body.size() < kReadHead) return refuse(Fault::Refused, "a read of nothing");
    const auto count = wire::value_at<std::uint64_t>(body);
    if (count == 0 || count > wire::kMaxReads || body.size() != kReadHead + count * sizeof(ReadItem))
        return refuse(Fault::Refused, "the number of reads in a frame differs from its header");
    table_ = regions_.table();
    const ServedRegions::Served* served = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
        const auto item = wire::value_at<ReadItem>(body, kReadHead + i * sizeof(ReadItem));
        total += item.length;
        if (item.offset % 8 != 0 || item.length % 8 != 0 || item.length == 0 || total > wire::kMaxReplyBytes)
            return refuse(Fault::OutOfRange, "reads are of whole words, and of limited length");
        if (served == nullptr || served->entry.id.number != item.number) served = table_->find(item.number);
        if (served == nullptr) return fail_missing(item.number, *table_), false;
        if (!served->region.has(item.offset, item.length))
            return refuse(Fault::OutOfRange, "a read beyond the end of region " + std::to_string(item.number));
        answers_.push_back({&served->region, item.offset, item.length});
    }
    return true;
}

/// The engine's queue pair may read for the lifetime of this session.
void Session::join(std::span<const std::byte> body) {
    if (regions_.rdma() == nullptr || body.size() != sizeof(RdmaEndpoint))
        return fail(Fault::Refused, "the node offers no RDMA");
    queue_pair_.reset();
    RdmaEndpoint ours;
    try {
        queue_pair_ = regions_.rdma()->accept(wire::value_at<RdmaEndpoint>(body), ours);
    } catch (const Error& error) {
        return fail(error.fault, error.what());
    }
    message_ = wire::frame(Message::Joined, ours);
}

/// Registers the growth of the region. This is the only request that makes the node work, so an engine sends it only if
/// a read is beyond its keys.
void Session::list_keys(std::span<const std::byte> body) {
    if (body.size() != sizeof(wire::KeysQuestion)) return fail(Fault::Refused, "a question of another size");
    const auto table = regions_.table();
    const auto number = wire::value_at<wire::KeysQuestion>(body).number;
    const ServedRegions::Served* served = table->find(number);
    if (served == nullptr) return fail_missing(number, *table);
    try {
        if (!served->registration) throw Error(Fault::Refused, "the region's memory may move, so it is read over TCP");
        message_ = wire::keys_frame(served->registration->segments(), {});
    } catch (const Error& error) {
        message_ = wire::keys_frame({}, error.what());
    }
}

void Session::copy_message() {
    const std::size_t n = std::min(room(), message_.size() - message_done_);
    std::copy_n(message_.begin() + static_cast<std::ptrdiff_t>(message_done_), n,
                output_.begin() + static_cast<std::ptrdiff_t>(output_end_));
    output_end_ += n;
    message_done_ += n;
    if (message_done_ < message_.size()) return;
    message_ = {};
    message_done_ = 0;
}

void Session::copy_answers() {
    for (; answers_done_ < answers_.size() && room() >= 8; ++answers_done_) {
        if (answers_done_ + kAhead < answers_.size()) {
            const Answer& ahead = answers_[answers_done_ + kAhead];
            __builtin_prefetch(ahead.region->data() + ahead.offset);
            __builtin_prefetch(ahead.region->data() + ahead.offset + 64);
        }
        Answer& next = answers_[answers_done_];
        const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(next.length, room() / 8 * 8));
        next.region->copy(next.offset, n, output_.data() + output_end_);
        output_end_ += n;
        next.offset += n;
        next.length -= n;
        if (next.length > 0) return;
    }
    if (answers_done_ < answers_.size()) return;
    answers_.clear();
    answers_done_ = 0;
    table_.reset();
}

void Session::fail_missing(std::uint32_t number, const ServedRegions::Table& table) {
    if (number < table.next_number)
        fail(Fault::Retired, "the node has withdrawn region " + std::to_string(number));
    else
        fail(Fault::Refused, "the node never had such a region");
}

void Session::fail(Fault fault, std::string_view words) {
    ++counters_.failures;
    message_ = wire::failure_frame(fault, words);
    message_done_ = 0;
    if (fault != Fault::Retired) state_ = State::Failed;
}

}  // namespace penstock::dataplane
