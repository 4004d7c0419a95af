// The data plane of one machine: regions of other processes, mapped read-only.
#pragma once

#include <map>
#include <memory>

#include "dataplane/mapped_region.hpp"
#include "dataplane/plane.hpp"

namespace penstock::dataplane {

class LocalPlane final : public Plane {
public:
    /// Maps the region that an entry of some node's directory names. Error(Retired) where its path leads to another
    /// file, or another epoch, by now; StorageError where it cannot be mapped.
    void attach(const RegionEntry& entry);
    void detach(RegionId id);

    std::vector<RegionEntry> directory(Node node) override;  // what is attached
    /// Copies at once; so a batch is done when it is posted.
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
