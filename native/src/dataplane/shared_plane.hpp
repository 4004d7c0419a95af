// The data plane to a node on this machine: its server provides the directory, and the regions are read in place.
#pragma once

#include "dataplane/local_plane.hpp"
#include "dataplane/tcp_plane.hpp"

namespace penstock::dataplane {

class SharedPlane final : public Plane {
public:
    SharedPlane(Node node, Address address, TcpOptions options);

    /// Also maps new regions and unmaps withdrawn ones. Error(Refused) if a region's file is not accessible: the node
    /// runs on another machine, in another mount namespace, or as another user.
    std::vector<RegionEntry> directory(Node node) override;
    Ticket post(std::span<const Read> reads) override { return local_.post(reads); }
    void wait(Ticket ticket) override { local_.wait(ticket); }
    const std::byte* mapped(RegionId id) override { return local_.mapped(id); }
    std::string_view transport(Node) const override { return "shm"; }

private:
    Node node_;
    TcpPlane control_;
    LocalPlane local_;
    std::uint64_t incarnation_ = 0;  // of the node whose regions are attached
};

}  // namespace penstock::dataplane
