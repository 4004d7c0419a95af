// The interface of the core to RDMA. If the core was built without libibverbs' headers, or there is no library or
// device, the functions that open something throw Error(Refused) with the reason.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/mapped_region.hpp"
#include "dataplane/plane.hpp"

namespace penstock::dataplane {

class TcpPlane;

/// One end of a reliable connection between two queue pairs, as sent to the other end.
struct RdmaEndpoint {
    std::array<std::uint8_t, 16> gid{};
    std::uint32_t queue_pair = 0;
    std::uint32_t first_packet = 0;  // sequence number
    std::uint32_t mtu = 0;           // as in ibv_mtu
    std::uint32_t reads = 0;         // the maximum in flight in one direction
};

/// A piece of a region that RDMA can read. It is registered for as long as the region is published.
struct RdmaSegment {
    std::uint64_t begin = 0, end = 0;  // offsets in the region
    std::uint64_t address = 0;         // of `begin`, as used in READs
    std::uint32_t key = 0;             // permits reads only
    std::uint32_t zero = 0;
};

/// A node's registrations of one region. The destructor invalidates the keys. Not thread-safe.
class RdmaRegistration {
public:
    virtual ~RdmaRegistration() = default;
    /// Registers the growth of the file since the last call. Error(Refused) if memory cannot be locked; earlier
    /// registrations remain valid.
    virtual const std::vector<RdmaSegment>& segments() = 0;
};

/// A node's device.
class RdmaHost {
public:
    virtual ~RdmaHost() = default;
    /// Creates an object without registrations. The region must outlive it.
    virtual std::shared_ptr<RdmaRegistration> registration(const MappedRegion& region) = 0;
    /// Connects a queue pair to the queue pair of the engine. Reads are possible for the lifetime of the result.
    /// Error(Refused).
    virtual std::shared_ptr<void> accept(const RdmaEndpoint& engine, RdmaEndpoint& node) = 0;
};

bool built_with_rdma();
/// Names of this machine's devices; empty if there is no library.
std::vector<std::string> rdma_devices();

/// `device` empty: the first one with an active port and an IPv4 address.
std::unique_ptr<RdmaHost> open_rdma_host(const std::string& device);
std::unique_ptr<Plane> make_rdma_plane(std::unique_ptr<TcpPlane> control, const std::string& device);

}  // namespace penstock::dataplane
