#include "dataplane/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include "dataplane/plane.hpp"
#include "errors.hpp"

namespace penstock::dataplane {

namespace {

constexpr int kWaiting = 128;  // connections that the kernel queues until they are accepted

std::string meaning(int error) { return std::generic_category().message(error); }

using Resolved = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Resolved resolve(const Address& address, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
    if (error != 0) throw Error(Fault::Disconnected, "cannot find " + address.text() + ": " + ::gai_strerror(error));
    return {found, ::freeaddrinfo};
}

Descriptor open_socket(const addrinfo& where) {
    return Descriptor(::socket(where.ai_family, where.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, where.ai_protocol));
}

Moved moved_by(ssize_t result, std::size_t& moved) {
    if (result > 0) {
        moved = static_cast<std::size_t>(result);
        return Moved::Some;
    }
    moved = 0;
    const bool later = result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    return later ? Moved::WouldBlock : Moved::Ended;
}

}  // namespace

void Descriptor::close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
}

std::string Address::text() const { return host + ":" + std::to_string(port); }

Descriptor listen_on(const Address& address) {
    const Resolved where = resolve(address, AI_PASSIVE);
    Descriptor socket = open_socket(*where);
    const int yes = 1;
    if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!socket || ::bind(socket.get(), where->ai_addr, where->ai_addrlen) != 0 ||
        ::listen(socket.get(), kWaiting) != 0)
        throw StorageError("cannot listen on " + address.text() + ": " + meaning(errno));
    return socket;
}

std::uint16_t port_of(const Descriptor& listening) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size);
    // The port has the same offset in both families' addresses.
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Descriptor connect_to(const Address& address, Clock::time_point deadline) {
    const Resolved where = resolve(address, 0);
    int error = 0;
    for (const addrinfo* next = where.get(); next != nullptr; next = next->ai_next) {
        Descriptor socket = open_socket(*next);
        if (!socket) continue;
        error = ::connect(socket.get(), next->ai_addr, next->ai_addrlen) == 0 ? 0 : errno;
        if (error == EINPROGRESS) {
            if (!wait_for(socket, POLLOUT, deadline))
                throw Error(Fault::TimedOut, address.text() + " did not answer in time");
            socklen_t size = sizeof error;
            ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        }
        if (error != 0) continue;
        const int yes = 1;  // requests are sent whole, so Nagle's delay gains nothing
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        return socket;
    }
    throw Error(Fault::Disconnected, "cannot connect to " + address.text() + ": " + meaning(error));
}

bool wait_for(const Descriptor& socket, short events, Clock::time_point deadline) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        pollfd poll{socket.get(), events, 0};
        const int ready = ::poll(&poll, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
        if (ready > 0) return true;
        if (left <= 0) return false;
    }
}

bool is_closed(const Descriptor& socket) {
    std::byte byte;
    const ssize_t n = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

Moved send_some(int socket, std::span<const std::byte> bytes, std::size_t& moved) {
    return moved_by(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), moved);
}

Moved receive_some(int socket, std::span<std::byte> bytes, std::size_t& moved) {
    return moved_by(::recv(socket, bytes.data(), bytes.size(), 0), moved);
}

Moved receive_some(int socket, std::span<std::byte> first, std::span<std::byte> second, std::size_t& moved) {
    std::array<iovec, 2> into = {iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
    return moved_by(::readv(socket, into.data(), into.size()), moved);
}

}  // namespace penstock::dataplane
