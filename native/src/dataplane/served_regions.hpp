// What a node lets others read: its directory, and the mappings that its server sends from.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/mapped_region.hpp"
#include "dataplane/plane.hpp"
#include "dataplane/rdma.hpp"

namespace penstock::dataplane {

/// Any thread. Publishing and withdrawing copy the table; whoever serves holds on to the one that he began with, so a
/// region stays mapped until the last answer from it is out.
class ServedRegions {
public:
    struct Served {
        RegionEntry entry;
        MappedRegion region;
        std::shared_ptr<RdmaRegistration> registration;  // null where RDMA cannot be had of it
    };
    struct Table {
        std::unordered_map<std::uint32_t, std::shared_ptr<const Served>> regions;  // by number
        std::uint32_t next_number = 0;                                             // below: given, or withdrawn

        const Served* find(std::uint32_t number) const {
            const auto found = regions.find(number);
            return found == regions.end() ? nullptr : found->second.get();
        }
    };

    /// With a device, regions that are `stable` can be read by RDMA.
    explicit ServedRegions(std::unique_ptr<RdmaHost> rdma = nullptr) : rdma_(std::move(rdma)) {}
    RdmaHost* rdma() const { return rdma_.get(); }

    /// `entry` without id, bytes, device and inode, which are found out here. Returns the region's number.
    /// StorageError where it cannot be mapped, LimitError beyond wire::kMaxRegions at a time.
    std::uint32_t publish(RegionEntry entry);
    /// Reads of it fail with Retired from now on. Nothing happens where it has gone already.
    void withdraw(std::uint32_t number);

    std::shared_ptr<const Table> table() const;
    std::vector<RegionEntry> directory() const;

private:
    const std::unique_ptr<RdmaHost> rdma_;
    mutable std::mutex mutex_;
    std::shared_ptr<const Table> table_ = std::make_shared<Table>();
};

}  // namespace penstock::dataplane
