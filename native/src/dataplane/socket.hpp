// Non-blocking TCP sockets with deadlines.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace penstock::dataplane {

using Clock = std::chrono::steady_clock;

class Descriptor {
public:
    explicit Descriptor(int number = -1) : number_(number) {}
    ~Descriptor() { close(); }
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) {
            close();
            number_ = std::exchange(other.number_, -1);
        }
        return *this;
    }
    int get() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    void close();

private:
    int number_;
};

struct Address {
    std::string host;
    std::uint16_t port = 0;
    std::string text() const;
};

/// StorageError if the address is not available. Port 0 selects a free one.
Descriptor listen_on(const Address& address);
std::uint16_t port_of(const Descriptor& listening);

/// Error(Disconnected) or Error(TimedOut).
Descriptor connect_to(const Address& address, Clock::time_point deadline);

/// Waits for poll(2)'s events; false at the deadline.
bool wait_for(const Descriptor& socket, short events, Clock::time_point deadline);

/// Whether the other side has closed the connection and all its bytes are read. Does not wait.
bool is_closed(const Descriptor& socket);

/// The outcome of recv(2) or send(2).
enum class Moved : std::uint8_t { Some, WouldBlock, Ended };
Moved send_some(int socket, std::span<const std::byte> bytes, std::size_t& moved);
Moved receive_some(int socket, std::span<std::byte> bytes, std::size_t& moved);
/// Fills `first`, then `second`.
Moved receive_some(int socket, std::span<std::byte> first, std::span<std::byte> second, std::size_t& moved);

}  // namespace penstock::dataplane
