#include "dataplane/served_regions.hpp"

#include <limits>
#include <utility>

#include "dataplane/wire.hpp"

namespace penstock::dataplane {

std::uint32_t ServedRegions::publish(RegionEntry entry) {
    if (entry.path.size() > wire::kMaxPathBytes) throw LimitError("a region's path is too long");
    MappedRegion region(entry.path, entry.reserve_bytes);
    entry.reserve_bytes = region.reserve_bytes();
    entry.device = region.device();
    entry.inode = region.inode();
    const std::lock_guard lock(mutex_);
    auto table = std::make_shared<Table>(*table_);
    if (table->regions.size() == wire::kMaxRegions) throw LimitError("a node publishes at most 65,536 regions");
    if (table->next_number == std::numeric_limits<std::uint32_t>::max())
        throw LimitError("the node has no more numbers for regions");
    const std::uint32_t number = table->next_number++;
    entry.id = {0, number};
    auto served = std::make_shared<Served>(Served{std::move(entry), std::move(region), nullptr});
    if (rdma_ && served->entry.stable) served->registration = rdma_->registration(served->region);
    table->regions.emplace(number, std::move(served));
    table_ = std::move(table);
    return number;
}

void ServedRegions::withdraw(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    if (table_->find(number) == nullptr) return;
    auto table = std::make_shared<Table>(*table_);
    table->regions.erase(number);
    table_ = std::move(table);
}

std::shared_ptr<const ServedRegions::Table> ServedRegions::table() const {
    const std::lock_guard lock(mutex_);
    return table_;
}

std::vector<RegionEntry> ServedRegions::directory() const {
    const auto table = this->table();
    std::vector<RegionEntry> entries;
    for (const auto& [number, served] : table->regions) {
        entries.push_back(served->entry);
        entries.back().bytes = served->region.bytes();
    }
    return entries;
}

}  // namespace penstock::dataplane
