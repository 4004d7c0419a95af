// RDMA for the data plane: what the rest of the core sees of it. Where the core was built without libibverbs' headers,
// or runs where there is no library or no device, the functions that open something throw Error(Refused), which says
// why.
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

/// One end of a reliable connection between two queue pairs, as it is told to the other end.
struct RdmaEndpoint {
    std::array<std::uint8_t, 16> gid{};
    std::uint32_t queue_pair = 0;
    std::uint32_t first_packet = 0;  // sequence number
    std::uint32_t mtu = 0;           // as in ibv_mtu
    std::uint32_t reads = 0;         // that may be on their way in one direction
};

/// A piece of a region that can be read by RDMA: registered once, for as long as the region is published.
struct RdmaSegment {
    std::uint64_t begin = 0, end = 0;  // offsets in the region
    std::uint64_t address = 0;         // of `begin`, as READs name it
    std::uint32_t key = 0;             // allows reading, nothing else
    std::uint32_t zero = 0;
};

/// What a node registers of one region. Dropping it takes the keys back. One thread at a time.
class RdmaRegistration {
public:
    virtual ~RdmaRegistration() = default;
    /// Registers what the file has grown by. Error(Refused) where memory cannot be locked; what was registered before
    /// stays so.
    virtual const std::vector<RdmaSegment>& segments() = 0;
};

/// A node's device.
class RdmaHost {
public:
    virtual ~RdmaHost() = default;
    /// Nothing is registered yet. The region outlives it.
    virtual std::shared_ptr<RdmaRegistration> registration(const MappedRegion& region) = 0;
    /// Readies a queue pair for the engine's; reads are possible while what is returned lives. Error(Refused).
    virtual std::shared_ptr<void> accept(const RdmaEndpoint& engine, RdmaEndpoint& node) = 0;
};

bool built_with_rdma();
/// Names of this machine's devices; none where there is no library.
std::vector<std::string> rdma_devices();

/// `device` empty: the first with an active port and an IPv4 address.
std::unique_ptr<RdmaHost> open_rdma_host(const std::string& device);
std::unique_ptr<Plane> make_rdma_plane(std::unique_ptr<TcpPlane> control, const std::string& device);

}  // namespace penstock::dataplane
