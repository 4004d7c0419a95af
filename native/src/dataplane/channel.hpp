// One connection of the data plane: a socket, with TLS or without.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "dataplane/socket.hpp"
#include "dataplane/tls.hpp"

namespace penstock::dataplane {

class Channel {
public:
    Channel() = default;
    explicit Channel(Descriptor socket, std::unique_ptr<TlsStream> tls = nullptr)
        : socket_(std::move(socket)), tls_(std::move(tls)) {}

    explicit operator bool() const { return static_cast<bool>(socket_); }
    const Descriptor& socket() const { return socket_; }
    bool is_encrypted() const { return tls_ != nullptr; }
    void close() {
        tls_.reset();
        socket_.close();
    }

    Moved send(std::span<const std::byte> bytes, std::size_t& moved) {
        return tls_ ? tls_->send(bytes, moved) : send_some(socket_.get(), bytes, moved);
    }
    Moved receive(std::span<std::byte> bytes, std::size_t& moved) {
        return tls_ ? tls_->receive(bytes, moved) : receive_some(socket_.get(), bytes, moved);
    }
    /// Fills `first`, and then `second` if more bytes are available.
    Moved receive(std::span<std::byte> first, std::span<std::byte> second, std::size_t& moved) {
        return tls_ ? tls_->receive(first, moved) : receive_some(socket_.get(), first, second, moved);
    }
    /// Whether some bytes that send() has accepted are not yet sent, because the socket was full. The next send() first
    /// sends these bytes.
    bool has_unsent() const { return tls_ && tls_->has_unsent(); }
    /// The reason why TLS has ended the connection; empty if it has not.
    std::string failure() const { return tls_ ? tls_->failure() : std::string(); }

    // These functions wait until the deadline. Error(Disconnected), Error(Refused) or Error(TimedOut).
    void shake_hands(Clock::time_point deadline);
    void send_all(std::span<const std::byte> bytes, Clock::time_point deadline);
    void receive_all(std::span<std::byte> bytes, Clock::time_point deadline);

private:
    [[noreturn]] void hung_up() const;
    void await(bool sending, Clock::time_point deadline) const;

    Descriptor socket_;
    std::unique_ptr<TlsStream> tls_;  // must not outlive the socket
};

}  // namespace penstock::dataplane
