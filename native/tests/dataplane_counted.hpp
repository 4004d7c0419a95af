// The reads that a server has counted. It counts an answer after it has sent it, so a reader may be ahead.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "dataplane/tcp_server.hpp"

namespace penstock::test {

/// Waits up to 5 s until `server` has counted `expected` reads. Returns the reads that it has counted.
inline std::uint64_t counted(const dataplane::TcpServer& server, std::uint64_t expected) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (server.counters().reads < expected && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return server.counters().reads;
}

}  // namespace penstock::test
