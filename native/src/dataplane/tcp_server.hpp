// The thread beside a node's store that answers reads over TCP. It reads regions like any other reader, from mappings
// of its own, and never touches the writer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "dataplane/served_regions.hpp"
#include "dataplane/session.hpp"
#include "dataplane/socket.hpp"

namespace penstock::dataplane {

struct ServerLimits {
    std::size_t connections = 256;  // each holds at most about 320 KiB; further ones are refused
    std::chrono::milliseconds handshake{5000};
    std::chrono::milliseconds stalled{30000};  // an engine that does not take its answers is cut
};

class TcpServer {
public:
    static constexpr std::size_t kLeastSecretBytes = 16;

    /// Listens at once. The regions outlive the server. DataError where the secret is too short to be one, StorageError
    /// where the address cannot be had.
    TcpServer(const ServedRegions& regions, const Address& address, std::vector<std::byte> secret,
              ServerLimits limits = {});
    ~TcpServer();  // cuts all connections
    TcpServer(const TcpServer&) = delete;
    TcpServer& operator=(const TcpServer&) = delete;

    std::uint16_t port() const { return port_; }

    struct Counters {
        std::uint64_t connections = 0;  // ever accepted
        std::uint64_t open = 0;
        std::uint64_t reads = 0, read_bytes = 0;
        std::uint64_t failures = 0;   // Failures sent
        std::uint64_t cpu_nanos = 0;  // of the thread
    };
    Counters counters() const;

private:
    class Loop;
    const NodeIdentity node_;
    Descriptor listening_, stop_;
    std::uint16_t port_;
    std::unique_ptr<Loop> loop_;
    mutable std::thread thread_;  // whose clock counters() asks for
};

/// Equal for all processes of one machine since its start; zero where it cannot be told.
Digest machine_identity();

}  // namespace penstock::dataplane
