// The hot loop of RDMA: READs go into a registered buffer, many per doorbell, and are copied to their destinations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "dataplane/rdma_device.hpp"

namespace penstock::dataplane {

/// One READ: within one segment, of at most RdmaReader::kPieceBytes.
struct RdmaPiece {
    std::uint64_t batch;
    std::uint64_t address;
    std::uint32_t key;
    std::uint32_t length;
    std::byte* into;
};

class RdmaReader {
public:
    static constexpr std::uint32_t kPieceBytes = std::uint32_t{256} << 10;

    explicit RdmaReader(std::shared_ptr<RdmaDevice> device);
    ~RdmaReader();
    RdmaReader(const RdmaReader&) = delete;
    RdmaReader& operator=(const RdmaReader&) = delete;

    RdmaEndpoint endpoint() const { return pair_.endpoint(); }
    void connect(const RdmaEndpoint& node) { pair_.connect(node); }

    /// Posts the first pieces, as many as there is room for. Returns the number of posted pieces. Error(Disconnected).
    std::size_t post(std::span<const RdmaPiece> pieces);
    /// Calls done(batch) for each piece that has completed. Error(Retired) if the node has invalidated a key.
    /// Error(Disconnected) for other failures. After an error, the reader cannot be used any more.
    template <class Done>
    bool poll(Done done) {
        const std::size_t arrived = this->arrived();
        for (std::size_t i = 0; i < arrived; ++i) done(take_first());
        return arrived > 0;
    }

private:
    struct Flying {
        RdmaPiece piece;
        std::byte* staged;
        std::size_t room;   // of the staging buffer, including an unused rest at its end
        bool closes_chain;  // the last of its chain; only its completion is reported
    };
    std::size_t reserve(std::uint32_t length, std::byte*& staged);
    std::size_t arrived();
    std::uint64_t take_first();

    static constexpr std::size_t kStagingBytes = std::size_t{8} << 20;
    static constexpr std::uint32_t kDepth = 256;
    static constexpr std::size_t kChain = 32;  // READs per doorbell

    /// Shared memory, so that after a fork() the device and this process still use the same pages.
    class Staging {
    public:
        Staging();
        ~Staging();
        Staging(const Staging&) = delete;
        Staging& operator=(const Staging&) = delete;
        std::byte* begin() const { return begin_; }

    private:
        std::byte* begin_;
    };

    std::shared_ptr<RdmaDevice> device_;
    Staging staging_;
    RdmaMemory memory_;
    RdmaQueuePair pair_;  // destroyed first: after that the device no longer writes to the buffer
    std::deque<Flying> flying_;
    std::size_t staged_begin_ = 0, staged_bytes_ = 0;  // the part of the ring in use
};

}  // namespace penstock::dataplane
