// The data plane within one machine: regions of other processes, mapped read-only.
#pragma once

#include <map>
#include <memory>

#include "dataplane/mapped_region.hpp"
#include "dataplane/plane.hpp"

namespace penstock::dataplane {

class LocalPlane final : public Plane {
public:
    /// Maps the region that a node's directory entry describes. Error(Retired) if its path now leads to another file or
    /// another epoch; StorageError if it cannot be mapped.
    void attach(const RegionEntry& entry);
    void detach(RegionId id);

    std::vector<RegionEntry> directory(Node node) override;  // the attached regions
    /// Copies at once: the batch is complete when post() returns.
    Ticket post(std::span<const Read> reads) override;
    void wait(Ticket) override {}
    const std::byte* mapped(RegionId id) override;
    std::string_view transport(Node) const override { return "shm"; }

private:
    struct Attached {
        RegionEntry entry;
        std::unique_ptr<MappedRegion> region;
    };
    const MappedRegion& find(RegionId id) const;

    std::map<RegionId, Attached> regions_;
};

}  // namespace penstock::dataplane
