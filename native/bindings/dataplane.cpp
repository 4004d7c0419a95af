// Bindings of the data plane: a node's served regions and server, and the planes that read from them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "dataplane/rdma.hpp"
#include "dataplane/shared_plane.hpp"
#include "dataplane/tcp_plane.hpp"
#include "dataplane/tcp_server.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace penstock::dataplane;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;

namespace {

std::vector<std::byte> to_bytes(const nb::bytes& secret) {
    const auto* data = static_cast<const std::byte*>(secret.data());
    return {data, data + secret.size()};
}

RegionKind kind_of(std::uint32_t kind) {
    if (kind < 1 || kind > 2) throw penstock::DataError("a region's kind is 1 (shard) or 2 (other)");
    return static_cast<RegionKind>(kind);
}

std::uint32_t publish(ServedRegions& regions, const std::string& path, std::uint32_t kind, std::uint32_t subject,
                      std::uint64_t epoch, std::uint64_t reserve_bytes, bool stable) {
    RegionEntry entry;
    entry.path = path;
    entry.kind = kind_of(kind);
    entry.subject = subject;
    entry.epoch = epoch;
    entry.reserve_bytes = reserve_bytes;
    entry.stable = stable;
    return regions.publish(entry);
}

TcpOptions options_of(const nb::bytes& secret, std::uint32_t connect_timeout_ms, std::uint32_t read_timeout_ms,
                      std::uint64_t bytes_in_flight, const std::shared_ptr<TlsIdentity>& tls) {
    TcpOptions options;
    options.secret = to_bytes(secret);
    options.tls = tls;
    options.connect_timeout = milliseconds(connect_timeout_ms);
    options.read_timeout = milliseconds(read_timeout_ms);
    options.bytes_in_flight = bytes_in_flight;
    return options;
}

template <class Made>
void construct(Made* self, Node node, const std::string& host, std::uint16_t port, const nb::bytes& secret,
               std::uint32_t connect_timeout_ms, std::uint32_t read_timeout_ms, std::uint64_t bytes_in_flight,
               const std::shared_ptr<TlsIdentity>& tls) {
    new (self) Made(node, {host, port}, options_of(secret, connect_timeout_ms, read_timeout_ms, bytes_in_flight, tls));
}

/// Returns a pointer to the base class, because only the core knows which kind of plane is built in.
std::shared_ptr<Plane> rdma_plane(Node node, const std::string& host, std::uint16_t port, const nb::bytes& secret,
                                  const std::string& device, std::uint32_t connect_timeout_ms,
                                  std::uint32_t read_timeout_ms, std::uint64_t bytes_in_flight,
                                  const std::shared_ptr<TlsIdentity>& tls) {
    auto options = options_of(secret, connect_timeout_ms, read_timeout_ms, bytes_in_flight, tls);
    auto control = std::make_unique<TcpPlane>(node, Address{host, port}, std::move(options));
    return make_rdma_plane(std::move(control), device);
}

/// Adds the members that all planes over a network share.
template <class Made>
nb::class_<Made, Plane> bind_plane(nb::module_& m, const char* name, const char* text) {
    return nb::class_<Made, Plane>(m, name, text)
        .def("__init__", &construct<Made>, "node"_a, "host"_a, "port"_a, "secret"_a, "connect_timeout_ms"_a = 2000,
             "read_timeout_ms"_a = 10000, "bytes_in_flight"_a = std::uint64_t{32} << 20, "tls"_a = nb::none());
}

/// The reads of three columns, concatenated in one array.
struct Gathered {
    std::vector<Read> reads;
    std::vector<std::uint64_t> words;
};

Gathered gather(Node node, const penstock::ColumnIn<std::uint32_t>& regions,
                const penstock::ColumnIn<std::uint64_t>& offsets, const penstock::ColumnIn<std::uint32_t>& lengths) {
    const std::size_t n = regions.size();
    if (offsets.size() != n || lengths.size() != n) throw penstock::DataError("read: columns of unequal length");
    Gathered gathered;
    gathered.reads.reserve(n);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < n; ++i) {
        gathered.reads.push_back({{node, regions.data()[i]}, offsets.data()[i], lengths.data()[i], nullptr});
        check_shape(gathered.reads.back());
        bytes += lengths.data()[i];
    }
    gathered.words.resize(bytes / 8);
    auto* into = reinterpret_cast<std::byte*>(gathered.words.data());
    for (Read& read : gathered.reads) read.into = std::exchange(into, into + read.length);
    return gathered;
}

penstock::IdsOut read(Plane& plane, Node node, const penstock::ColumnIn<std::uint32_t>& regions,
                      const penstock::ColumnIn<std::uint64_t>& offsets,
                      const penstock::ColumnIn<std::uint32_t>& lengths) {
    Gathered gathered = gather(node, regions, offsets, lengths);
    {
        penstock::Unlocked release;
        plane.read(gathered.reads);
    }
    return penstock::to_numpy(std::move(gathered.words));
}

std::vector<RegionEntry> directory(Plane& plane, Node node) {
    penstock::Unlocked release;
    return plane.directory(node);
}

nb::dict counters(const TcpServer& server) {
    const TcpServer::Counters counters = server.counters();
    nb::dict figures;
    figures["connections"] = counters.connections;
    figures["open"] = counters.open;
    figures["reads"] = counters.reads;
    figures["read_bytes"] = counters.read_bytes;
    figures["failures"] = counters.failures;
    figures["cpu_nanos"] = counters.cpu_nanos;
    return figures;
}

void bind_node(nb::module_& m) {
    nb::class_<TlsIdentity>(m, "TlsIdentity", "Certificates of this process, for TLS of the data plane.")
        .def(
            "__init__",
            [](TlsIdentity* self, const std::string& ca, const std::string& certificate, const std::string& key) {
                new (self) TlsIdentity({ca, certificate, key});
            },
            "ca"_a, "certificate"_a, "key"_a);

    nb::class_<ServedRegions>(m, "ServedRegions", "The regions that other processes can read from this node.")
        .def(
            "__init__",
            [](ServedRegions* self, const std::optional<std::string>& rdma_device) {
                new (self) ServedRegions(rdma_device ? open_rdma_host(*rdma_device) : nullptr);
            },
            "rdma_device"_a = nb::none())
        .def("publish", &publish, "path"_a, "kind"_a = 2, "subject"_a = 0, "epoch"_a = 0, "reserve_bytes"_a = 0,
             "stable"_a = false)
        .def("withdraw", &ServedRegions::withdraw, "number"_a)
        .def("directory", &ServedRegions::directory);

    nb::class_<TcpServer>(m, "DataPlaneServer", "A thread that serves reads over TCP.")
        .def(
            "__init__",
            [](TcpServer* self, const ServedRegions& regions, const std::string& host, std::uint16_t port,
               const nb::bytes& secret, std::size_t connections, std::uint32_t handshake_ms, std::uint32_t stalled_ms,
               std::shared_ptr<TlsIdentity> tls) {
                const ServerLimits limits{connections, milliseconds(handshake_ms), milliseconds(stalled_ms)};
                new (self) TcpServer(regions, {host, port}, to_bytes(secret), limits, std::move(tls));
            },
            "regions"_a, "host"_a, "port"_a, "secret"_a, "connections"_a = 256, "handshake_ms"_a = 5000,
            "stalled_ms"_a = 30000, "tls"_a = nb::none(), nb::keep_alive<1, 2>())
        .def_prop_ro("port", &TcpServer::port)
        .def("counters", &counters);
}

void bind_planes(nb::module_& m) {
    nb::class_<Plane>(m, "Plane", "Reads regions of nodes. Only one thread at a time can use a plane.")
        .def("directory", &directory, "node"_a)
        .def("read", &read, "node"_a, "regions"_a, "offsets"_a, "lengths"_a)
        .def("transport", &Plane::transport, "node"_a)
        .def("remark", &Plane::remark, "node"_a);

    bind_plane<TcpPlane>(m, "TcpPlane", "A plane over one TCP connection.")
        .def("is_on_this_machine", &TcpPlane::is_on_this_machine, nb::call_guard<penstock::Unlocked>())
        .def("offers_rdma", &TcpPlane::offers_rdma);
    bind_plane<SharedPlane>(m, "SharedPlane", "A plane that maps the regions of a node on this machine.");
    m.def("rdma_plane", &rdma_plane, "node"_a, "host"_a, "port"_a, "secret"_a, "device"_a = "",
          "connect_timeout_ms"_a = 2000, "read_timeout_ms"_a = 10000, "bytes_in_flight"_a = std::uint64_t{32} << 20,
          "tls"_a = nb::none());
    m.def("rdma_devices", &rdma_devices);
    m.def("built_with_rdma", &built_with_rdma);
}

}  // namespace

void bind_dataplane(nb::module_& m) {
    nb::class_<RegionEntry>(m, "RegionEntry", "The entry of a region in the directory of its node.")
        .def_prop_ro("node", [](const RegionEntry& entry) { return entry.id.node; })
        .def_prop_ro("number", [](const RegionEntry& entry) { return entry.id.number; })
        .def_prop_ro("kind", [](const RegionEntry& entry) { return static_cast<std::uint32_t>(entry.kind); })
        .def_ro("subject", &RegionEntry::subject)
        .def_ro("epoch", &RegionEntry::epoch)
        .def_ro("bytes", &RegionEntry::bytes)
        .def_ro("reserve_bytes", &RegionEntry::reserve_bytes)
        .def_ro("path", &RegionEntry::path);
    bind_node(m);
    bind_planes(m);
}
