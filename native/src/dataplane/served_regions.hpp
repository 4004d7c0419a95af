// The regions that a node serves: its directory, and the mappings that its server sends from.
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

/// Thread-safe. publish() and withdraw() copy the table. A server session shares ownership of the table with which it
/// has begun an answer. A region therefore stays mapped until its last answer is sent.
class ServedRegions {
public:
    struct Served {
        RegionEntry entry;
        MappedRegion region;
        std::shared_ptr<RdmaRegistration> registration;  // null if RDMA is not available for it
    };
    struct Table {
        std::unordered_map<std::uint32_t, std::shared_ptr<const Served>> regions;  // by number
        std::uint32_t next_number = 0;  // lower numbers are in use or withdrawn

        const Served* find(std::uint32_t number) const {
            const auto found = regions.find(number);
            return found == regions.end() ? nullptr : found->second.get();
        }
    };

    /// With a device, regions that are `stable` can be read by RDMA.
    explicit ServedRegions(std::unique_ptr<RdmaHost> rdma = nullptr) : rdma_(std::move(rdma)) {}
    RdmaHost* rdma() const { return rdma_.get(); }

    /// Publishes a region and returns its number. `entry`: the description of the region. The call determines id,
    /// bytes, device and inode itself. StorageError if the region cannot be mapped, LimitError if more than
    /// wire::kMaxRegions regions are published at a time.
    std::uint32_t publish(RegionEntry entry);
    /// From now on, reads of the region fail with Retired. No effect if it is already withdrawn.
    void withdraw(std::uint32_t number);

    std::shared_ptr<const Table> table() const;
    std::vector<RegionEntry> directory() const;

private:
    const std::unique_ptr<RdmaHost> rdma_;
    mutable std::mutex mutex_;
    std::shared_ptr<const Table> table_ = std::make_shared<Table>();
};

}  // namespace penstock::dataplane
