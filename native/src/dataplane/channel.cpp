#include "dataplane/channel.hpp"

#include <poll.h>

#include "dataplane/plane.hpp"

namespace penstock::dataplane {

void Channel::hung_up() const {
    if (const std::string why = failure(); !why.empty()) throw Error(Fault::Refused, "TLS: " + why);
    throw Error(Fault::Disconnected, "the node has closed the connection");
}

void Channel::await(bool sending, Clock::time_point deadline) const {
    const auto events = static_cast<short>(POLLIN | (sending ? POLLOUT : 0));
    if (!wait_for(socket_, sending ? events : POLLIN, deadline))
        throw Error(Fault::TimedOut, "the node did not answer in time");
}

void Channel::shake_hands(Clock::time_point deadline) {
    if (!tls_) return;
    for (;;) {
        const Moved how = tls_->handshake();
        if (how == Moved::Some) return;
        if (how == Moved::Ended) hung_up();
        await(tls_->has_unsent(), deadline);
    }
}

void Channel::send_all(std::span<const std::byte> bytes, Clock::time_point deadline) {
    while (!bytes.empty() || has_unsent()) {
        std::size_t moved = 0;
        const Moved how = send(bytes, moved);
        if (how == Moved::Ended) hung_up();
        bytes = bytes.subspan(moved);
        if (how == Moved::WouldBlock && (!bytes.empty() || has_unsent())) {
            if (!wait_for(socket_, POLLOUT, deadline)) throw Error(Fault::TimedOut, "the node did not answer in time");
        }
    }
}

void Channel::receive_all(std::span<std::byte> bytes, Clock::time_point deadline) {
    while (!bytes.empty()) {
        std::size_t moved = 0;
        const Moved how = receive(bytes, moved);
        if (how == Moved::Ended) hung_up();
        if (how == Moved::WouldBlock) await(false, deadline);
        bytes = bytes.subspan(moved);
    }
}

}  // namespace penstock::dataplane
