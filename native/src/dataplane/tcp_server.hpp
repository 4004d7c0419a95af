// The thread of a node that answers reads over TCP. It reads regions like any other reader, from its own mappings, and
// does not interact with the writer.
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
#include "dataplane/tls.hpp"

namespace penstock::dataplane {

struct ServerLimits {
    // Maximum number of connections. Further connections are refused. A connection takes about 320 KiB, or 640 KiB with
    // TLS.
    std::size_t connections = 256;
    std::chrono::milliseconds handshake{5000};  // of TLS and of the secret, together
    // If an engine receives none of its answers for this time, its connection is closed.
    std::chrono::milliseconds stalled{30000};
};

class TcpServer {
public:
    static constexpr std::size_t kLeastSecretBytes = 16;

    /// Starts to listen. The regions must outlive the server. DataError if the secret is too short, StorageError if the
    /// address is not available. `tls`: null without TLS.
    TcpServer(const ServedRegions& regions, const Address& address, std::vector<std::byte> secret,
              ServerLimits limits = {}, std::shared_ptr<TlsIdentity> tls = nullptr);
    ~TcpServer();  // closes all connections
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
    const std::shared_ptr<TlsIdentity> tls_;
    Descriptor listening_, stop_;
    std::uint16_t port_;
    std::unique_ptr<Loop> loop_;
    mutable std::thread thread_;  // counters() reads its CPU clock
};

/// Equal for all processes of one machine since its boot; zero if unknown.
Digest machine_identity();

}  // namespace penstock::dataplane
