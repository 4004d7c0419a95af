// The data plane to a node of this machine: its server tells which regions there are, and they are read in place.
#pragma once

#include "dataplane/local_plane.hpp"
#include "dataplane/tcp_plane.hpp"

namespace penstock::dataplane {

class SharedPlane final : public Plane {
public:
    SharedPlane(Node node, Address address, TcpOptions options);

    /// Maps what is new, and lets go of what the node has withdrawn. Error(Refused) where a region's file cannot be had
    /// here: the node runs elsewhere, or behind another mount table, or belongs to another user.
    std::vector<RegionEntry> directory(Node node) override;
    Ticket post(std::span<const Read> reads) override { return local_.post(reads); }
    void wait(Ticket ticket) override { local_.wait(ticket); }
    const std::byte* mapped(RegionId id) override { return local_.mapped(id); }
    std::string_view transport(Node) const override { return "shm"; }

private:
    Node node_;
    TcpPlane control_;
    LocalPlane local_;
    std::uint64_t incarnation_ = 0;  // that the attached regions belong to
};

}  // namespace penstock::dataplane
