#include "dataplane/tcp_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <exception>
#include <fstream>
#include <string>
#include <unordered_map>
#include <utility>

#include "dataplane/awake.hpp"
#include "dataplane/channel.hpp"
#include "errors.hpp"

namespace penstock::dataplane {

namespace {

constexpr auto kSweep = std::chrono::milliseconds(500);
// The time for a Failure to arrive before the connection is reset.
constexpr auto kLinger = std::chrono::milliseconds(1000);
constexpr auto kPause = std::chrono::milliseconds(10);
constexpr int kRounds = 8;  // buffers that one connection moves before others are served
constexpr std::size_t kEvents = 64;

/// One connection: its session, and the state of its socket.
struct Connection {
    Connection(Channel c, const ServedRegions& regions, const NodeIdentity& node, Clock::time_point now)
        : channel(std::move(c)), session(regions, node), progress(now) {}

    Channel channel;
    Session session;
    Clock::time_point progress;  // when bytes last moved; during the handshake: its start
    bool blocked = false;        // answers wait for the engine to receive them
    bool busy = false;           // its turn ended before its work
    bool lingering = false;      // everything is sent; further input is discarded
    std::uint32_t events = EPOLLIN;
    Session::Counters counted;
};

}  // namespace

class TcpServer::Loop {
public:
    Loop(const ServedRegions& regions, const NodeIdentity& node, ServerLimits limits, TlsIdentity* tls,
         const Descriptor& listening, const Descriptor& stop)
        : regions_(regions),
          node_(node),
          limits_(limits),
          tls_(tls),
          listening_(listening),
          stop_(stop),
          epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
        if (!epoll_) throw StorageError("cannot make an epoll descriptor");
        watch(listening_.get(), EPOLLIN, EPOLL_CTL_ADD);
        watch(stop_.get(), EPOLLIN, EPOLL_CTL_ADD);
    }

    void run();
    Counters counters() const;

private:
    void watch(int socket, std::uint32_t events, int operation) const {
        epoll_event event{};
        event.events = events;
        event.data.fd = socket;
        ::epoll_ctl(epoll_.get(), operation, socket, &event);
    }
    void accept_all();
    bool try_serve(Connection& connection);
    bool serve(Connection& connection);
    bool receive(Connection& connection, bool& moved);
    bool send(Connection& connection, bool& moved);
    bool linger(Connection& connection);
    void end(Connection& connection);
    bool explain(Connection& connection);
    void await(Connection& connection);
    bool is_late(const Connection& connection, Clock::time_point now) const;
    void count(Connection& connection);
    void sweep();
    void close(int socket);

    const ServedRegions& regions_;
    const NodeIdentity& node_;
    const ServerLimits limits_;
    TlsIdentity* const tls_;  // null without TLS
    const Descriptor& listening_;
    const Descriptor& stop_;
    Descriptor epoll_;
    std::unordered_map<int, Connection> connections_;
    Awake awake_;
    // Relaxed statistics: written by the loop's thread only, read by any thread; no other data depends on them.
    std::atomic<std::uint64_t> accepted_{0}, open_{0}, reads_{0}, read_bytes_{0}, failures_{0};
};

void TcpServer::Loop::run() {
    std::array<epoll_event, kEvents> events{};
    auto swept = Clock::now();
    for (;;) {
        int n = 0;
        const auto look = [&](int wait_ms) {
            n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
            return n != 0;
        };
        awake_.wait([&] { return look(0); },
                    [&] { look(connections_.empty() ? -1 : static_cast<int>(kSweep.count())); });
        for (int i = 0; i < n; ++i) {
            const int socket = events[static_cast<std::size_t>(i)].data.fd;
            if (socket == stop_.get()) return;
            if (socket == listening_.get()) {
                accept_all();
                continue;
            }
            const auto found = connections_.find(socket);
            if (found != connections_.end() && !try_serve(found->second)) close(socket);
        }
        if (Clock::now() - swept < kSweep) continue;
        sweep();
        swept = Clock::now();
    }
}

void TcpServer::Loop::accept_all() {
    for (;;) {
        Descriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            // For example out of descriptors: the connection stays in the kernel's queue, and epoll reports it again.
            if (errno != EAGAIN && errno != ECONNABORTED) std::this_thread::sleep_for(kPause);
            return;
        }
        accepted_.fetch_add(1, std::memory_order_relaxed);
        if (connections_.size() >= limits_.connections) {
            failures_.fetch_add(1, std::memory_order_relaxed);
            if (tls_ != nullptr) continue;  // a Failure would be no TLS
            const auto failure = wire::failure_frame(Fault::Refused, "the node has too many connections");
            std::size_t sent = 0;
            send_some(socket.get(), failure, sent);
            continue;
        }
        const int yes = 1;
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        const int number = socket.get();
        try {
            auto tls = tls_ == nullptr ? nullptr : tls_->accept(socket);
            Channel channel(std::move(socket), std::move(tls));
            connections_.try_emplace(number, std::move(channel), regions_, node_, Clock::now());
        } catch (const std::exception&) {
            continue;  // out of memory
        }
        watch(number, EPOLLIN, EPOLL_CTL_ADD);
        open_.store(connections_.size(), std::memory_order_relaxed);
    }
}

/// An error of one connection ends only that connection.
bool TcpServer::Loop::try_serve(Connection& connection) {
    try {
        return serve(connection);
    } catch (const std::exception&) {
        return false;
    }
}

/// Moves bytes both ways for a while. False if the connection has ended.
bool TcpServer::Loop::serve(Connection& connection) {
    if (connection.lingering) return linger(connection);
    const bool proving = !connection.session.authenticated();
    bool moved = true, any = false;
    for (int round = 0; round < kRounds && moved; ++round) {
        moved = false;
        if (!receive(connection, moved) || !send(connection, moved)) return explain(connection);
        any |= moved;
    }
    connection.busy = moved;
    count(connection);
    if (any && (!proving || connection.session.authenticated())) connection.progress = Clock::now();
    if (connection.session.over() && !connection.blocked) end(connection);
    await(connection);
    return true;
}

void TcpServer::Loop::end(Connection& connection) {
    ::shutdown(connection.channel.socket().get(), SHUT_WR);
    connection.lingering = true;
    connection.blocked = connection.busy = false;
    connection.progress = Clock::now();
}

/// If TLS has ended the connection, the socket stays open for some time, so that the alert with the reason arrives. The
/// same is done for a Failure.
bool TcpServer::Loop::explain(Connection& connection) {
    if (connection.channel.failure().empty()) return false;
    failures_.fetch_add(1, std::memory_order_relaxed);
    end(connection);
    await(connection);
    return true;
}

bool TcpServer::Loop::receive(Connection& connection, bool& moved) {
    if (connection.blocked) return true;
    const auto space = connection.session.space();
    if (space.empty()) return true;
    std::size_t bytes = 0;
    const Moved how = connection.channel.receive(space, bytes);
    connection.session.received(bytes);
    moved |= how == Moved::Some;
    return how != Moved::Ended;
}

bool TcpServer::Loop::send(Connection& connection, bool& moved) {
    const auto output = connection.session.output();
    connection.blocked = connection.channel.has_unsent();
    if (output.empty() && !connection.blocked) return true;
    std::size_t bytes = 0;
    const Moved how = connection.channel.send(output, bytes);
    connection.session.sent(bytes);
    moved |= how == Moved::Some;
    connection.blocked = connection.channel.has_unsent() || (how == Moved::WouldBlock && !output.empty());
    return how != Moved::Ended;
}

/// Reads and discards input until the engine closes the connection: closing with unread bytes would reset the
/// connection, and the Failure might be lost.
bool TcpServer::Loop::linger(Connection& connection) {
    std::array<std::byte, 4096> unread;
    for (int round = 0; round < kRounds; ++round) {
        std::size_t bytes = 0;
        const Moved how = receive_some(connection.channel.socket().get(), unread, bytes);
        if (how != Moved::Some) return how == Moved::WouldBlock;
    }
    return true;
}

void TcpServer::Loop::await(Connection& connection) {
    const std::uint32_t events = connection.blocked || connection.busy ? EPOLLOUT : EPOLLIN;
    if (events == connection.events) return;
    connection.events = events;
    watch(connection.channel.socket().get(), events, EPOLL_CTL_MOD);
}

bool TcpServer::Loop::is_late(const Connection& connection, Clock::time_point now) const {
    if (connection.lingering) return now - connection.progress > kLinger;
    if (!connection.session.authenticated()) return now - connection.progress > limits_.handshake;
    return connection.blocked && now - connection.progress > limits_.stalled;
}

void TcpServer::Loop::count(Connection& connection) {
    const Session::Counters& now = connection.session.counters();
    Session::Counters& before = connection.counted;
    reads_.fetch_add(now.reads - before.reads, std::memory_order_relaxed);
    read_bytes_.fetch_add(now.read_bytes - before.read_bytes, std::memory_order_relaxed);
    failures_.fetch_add(now.failures - before.failures, std::memory_order_relaxed);
    before = now;
}

void TcpServer::Loop::sweep() {
    const auto now = Clock::now();
    std::vector<int> late;
    for (const auto& [socket, connection] : connections_)
        if (is_late(connection, now)) late.push_back(socket);
    for (const int socket : late) close(socket);
}

void TcpServer::Loop::close(int socket) {
    connections_.erase(socket);  // closing removes it from the epoll set
    open_.store(connections_.size(), std::memory_order_relaxed);
}

TcpServer::Counters TcpServer::Loop::counters() const {
    Counters counters;
    counters.connections = accepted_.load(std::memory_order_relaxed);
    counters.open = open_.load(std::memory_order_relaxed);
    counters.reads = reads_.load(std::memory_order_relaxed);
    counters.read_bytes = read_bytes_.load(std::memory_order_relaxed);
    counters.failures = failures_.load(std::memory_order_relaxed);
    return counters;
}

// ---- the server

namespace {

NodeIdentity identity(std::vector<std::byte> secret) {
    if (secret.size() < TcpServer::kLeastSecretBytes)
        throw DataError("the data plane's secret needs at least 16 bytes");
    return {std::move(secret), wire::value_at<std::uint64_t>(random_digest()), machine_identity()};
}

}  // namespace

TcpServer::TcpServer(const ServedRegions& regions, const Address& address, std::vector<std::byte> secret,
                     ServerLimits limits, std::shared_ptr<TlsIdentity> tls)
    : node_(identity(std::move(secret))),
      tls_(std::move(tls)),
      listening_(listen_on(address)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      port_(port_of(listening_)),
      loop_(std::make_unique<Loop>(regions, node_, limits, tls_.get(), listening_, stop_)),
      thread_([this] { loop_->run(); }) {}

TcpServer::~TcpServer() {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
}

TcpServer::Counters TcpServer::counters() const {
    Counters counters = loop_->counters();
    clockid_t clock;
    timespec time{};
    if (::pthread_getcpuclockid(thread_.native_handle(), &clock) == 0 && ::clock_gettime(clock, &time) == 0)
        counters.cpu_nanos =
            static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
    return counters;
}

Digest machine_identity() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string boot;
    return std::getline(file, boot) ? sha256(std::as_bytes(std::span(boot))) : Digest{};
}

}  // namespace penstock::dataplane
