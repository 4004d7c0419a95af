// The data plane over TCP: one connection to one node's server (tcp_server.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dataplane/awake.hpp"
#include "dataplane/channel.hpp"
#include "dataplane/plane.hpp"
#include "dataplane/socket.hpp"
#include "dataplane/wire.hpp"

namespace penstock::dataplane {

struct TcpOptions {
    std::vector<std::byte> secret;
    std::shared_ptr<TlsIdentity> tls;                 // null: without TLS
    std::chrono::milliseconds connect_timeout{2000};  // until the Welcome
    std::chrono::milliseconds read_timeout{10000};    // for a batch, from wait() on
    std::chrono::milliseconds retry_pause{200};       // minimum time between a failed attempt and the next
    std::uint64_t bytes_in_flight = std::uint64_t{32} << 20;
    std::size_t batches = 1024;  // posted and not yet waited for
};

/// Connects at the first use, and again after a failure. If the node has restarted meanwhile, reads of regions of its
/// previous incarnation fail with Retired, until directory() is called.
class TcpPlane final : public Plane {
public:
    TcpPlane(Node node, Address address, TcpOptions options);
    ~TcpPlane() override;

    std::vector<RegionEntry> directory(Node node) override;
    Ticket post(std::span<const Read> reads) override;
    void wait(Ticket ticket) override;
    std::string_view transport(Node) const override { return "tcp"; }

    /// Whether the node runs on this machine. Error.
    bool is_on_this_machine();
    /// Changes whenever the node's server restarts; 0 before the first connection.
    std::uint64_t incarnation() const { return welcome_.incarnation; }

    // For the RDMA plane, whose queue pairs and keys are exchanged over this connection.
    Node node() const { return node_; }
    const TcpOptions& options() const { return options_; }
    bool offers_rdma() const { return welcome_.rdma != 0; }
    /// The number of the present connection. Agreements that were made over an earlier connection are not valid any
    /// more. Connects if necessary. Error.
    std::uint64_t connection();
    /// Sends one question and returns the body of its answer. Error.
    std::vector<std::byte> ask(wire::Message question, std::span<const std::byte> body, wire::Message answer);
    void hang_up();
    bool has_node_hung_up() const { return !channel_ || is_closed(channel_.socket()); }

private:
    struct Expected {     // a read in flight
        std::byte* into;  // null: the bytes are discarded
        std::uint32_t length;
    };
    struct Request {  // a frame in flight
        Ticket ticket;
        std::uint32_t reads;
        std::uint64_t bytes;  // of the answer
        std::uint64_t cost;   // counted against bytes_in_flight
        wire::Message answer;
    };
    struct Batch {
        std::size_t requests;  // not yet answered
        std::optional<Error> error;
    };
    struct Known {
        std::uint64_t bytes;
    };

    void connect();
    void authenticate(Channel& channel, Clock::time_point deadline);
    void check(std::span<const Read> reads);
    bool is_within(const Read& read) const;
    void request(Ticket ticket, std::span<const Read> reads, std::uint64_t bytes);
    void make_room(std::uint64_t bytes);

    void progress(Clock::time_point deadline);
    bool send_requests();
    bool receive_answers();
    void take_answers();
    void begin_answer();
    std::size_t take_data(std::span<const std::byte> bytes);
    void end_answer();
    void take_failure();
    void fail_first(const Error& error);
    void drop_all(const Error& error);
    [[noreturn]] void fail_all(const Error& error);
    [[noreturn]] void late();
    [[noreturn]] void hung_up();

    const Node node_;
    const Address address_;
    const TcpOptions options_;

    Awake awake_;
    Channel channel_;
    wire::Welcome welcome_{};
    Clock::time_point retry_at_{};
    std::unordered_map<std::uint32_t, Known> regions_;  // of this incarnation
    std::optional<std::vector<std::byte>> answered_;    // the answer to a question
    std::uint64_t connections_ = 0;

    Ticket last_ticket_ = 0;
    std::map<Ticket, Batch> batches_;
    std::deque<Request> requests_;
    std::deque<Expected> expected_;
    std::uint64_t in_flight_ = 0;

    std::vector<std::byte> output_, input_;
    std::size_t output_begin_ = 0, input_begin_ = 0, input_end_ = 0;
    wire::FrameHeader answer_{};  // being received; message 0 between answers
    std::uint64_t answer_left_ = 0;
    std::vector<std::byte> control_;  // body of an answer other than Data
};

}  // namespace penstock::dataplane
