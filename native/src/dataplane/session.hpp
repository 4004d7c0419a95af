// One engine's connection to a node's server, without the socket. It only consumes and produces bytes. The server is
// therefore a loop that moves bytes, and a fuzzer needs no network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/served_regions.hpp"
#include "dataplane/wire.hpp"

namespace penstock::dataplane {

/// The data that a node announces in its Welcome, and its requirements.
struct NodeIdentity {
    std::vector<std::byte> secret;
    std::uint64_t incarnation = 0;
    Digest machine{};
};

/// The memory is bounded for any input: one frame of requests and one buffer of answers. While answers are not
/// consumed, no further request is read. A peer that violates the protocol or reads outside of a region gets a Failure,
/// and its connection is closed.
class Session {
public:
    Session(const ServedRegions& regions, const NodeIdentity& node);

    /// The buffer for the engine's next bytes. Empty if there is no room at present, or if the session accepts no more
    /// input.
    std::span<std::byte> space();
    void received(std::size_t bytes) { input_end_ += bytes; }

    /// The next bytes to send. Empty if there is nothing to send before more input arrives.
    std::span<const std::byte> output();
    void sent(std::size_t bytes) { output_begin_ += bytes; }

    bool authenticated() const { return state_ == State::Open; }
    bool over() const { return state_ == State::Failed && message_.empty() && output_begin_ == output_end_; }

    struct Counters {
        std::uint64_t reads = 0, read_bytes = 0, failures = 0;
    };
    const Counters& counters() const { return counters_; }

private:
    enum class State : std::uint8_t { Greeting, Proving, Open, Failed };
    struct Answer {
        const MappedRegion* region;
        std::uint64_t offset;
        std::uint32_t length;
    };

    bool take_frame();
    bool is_expected(wire::Message message) const;
    void answer(wire::Message message, std::span<const std::byte> body);
    void greet(std::span<const std::byte> body);
    void check_proof(std::span<const std::byte> body);
    void begin_reads(std::span<const std::byte> body);
    bool find_answers(std::span<const std::byte> body, std::uint64_t& total);
    void join(std::span<const std::byte> body);
    void list_keys(std::span<const std::byte> body);
    void copy_message();
    void copy_answers();
    void fail_missing(std::uint32_t number, const ServedRegions::Table& table);
    void fail(Fault fault, std::string_view words);
    std::size_t room() const { return output_.size() - output_end_; }

    const ServedRegions& regions_;
    const NodeIdentity& node_;
    State state_ = State::Greeting;
    Digest engine_nonce_{}, node_nonce_{};

    std::vector<std::byte> input_, output_;
    std::size_t input_begin_ = 0, input_end_ = 0, output_begin_ = 0, output_end_ = 0;

    std::vector<std::byte> message_;  // the current answer: a whole frame, or the header of a Data frame, ...
    std::size_t message_done_ = 0;
    std::vector<Answer> answers_;  // ... followed by these
    std::size_t answers_done_ = 0;
    std::shared_ptr<const ServedRegions::Table> table_;  // owns the mappings of the regions in answers_
    std::shared_ptr<void> queue_pair_;                   // the pair that the engine reads by
    Counters counters_;
};

}  // namespace penstock::dataplane
