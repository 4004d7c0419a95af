#include "dataplane/local_plane.hpp"

#include <atomic>
#include <utility>

#include "store/layout.hpp"

namespace penstock::dataplane {

namespace {

bool is_that_file(const MappedRegion& region, const RegionEntry& entry) {
    if (region.device() != entry.device || region.inode() != entry.inode) return false;
    if (entry.kind != RegionKind::Shard) return true;
    // File systems reuse inode numbers; epochs of shards never recur.
    std::uint64_t epoch = 0;
    if (!region.has(0, sizeof(layout::Header))) return false;
    region.copy(offsetof(layout::Header, epoch), sizeof epoch, reinterpret_cast<std::byte*>(&epoch));
    return epoch == entry.epoch;
}

}  // namespace

void LocalPlane::attach(const RegionEntry& entry) {
    auto region = std::make_unique<MappedRegion>(entry.path, entry.reserve_bytes);
    if (!is_that_file(*region, entry)) throw Error(Fault::Retired, "another region has replaced it: " + entry.path);
    regions_.insert_or_assign(entry.id, Attached{entry, std::move(region)});
}

void LocalPlane::detach(RegionId id) { regions_.erase(id); }

std::vector<RegionEntry> LocalPlane::directory(Node node) {
    std::vector<RegionEntry> entries;
    for (auto& [id, attached] : regions_) {
        if (id.node != node) continue;
        attached.entry.bytes = attached.region->bytes();
        entries.push_back(attached.entry);
    }
    return entries;
}

const MappedRegion& LocalPlane::find(RegionId id) const {
    const auto found = regions_.find(id);
    if (found != regions_.end()) return *found->second.region;
    throw Error(Fault::Retired, "no region " + std::to_string(id.number) + " of node " + std::to_string(id.node));
}

Plane::Ticket LocalPlane::post(std::span<const Read> reads) {
    RegionId last;
    const MappedRegion* region = nullptr;
    for (const Read& read : reads) {
        check_shape(read);
        if (region == nullptr || read.region != last) region = &find(last = read.region);
        if (!region->has(read.offset, read.length))
            throw Error(Fault::OutOfRange, "a read beyond the end of " + region->path());
        region->copy(read.offset, read.length, read.into);
    }
    // Orders the next batch's loads after those of this batch (plane.hpp: the guarantee about published words).
    std::atomic_thread_fence(std::memory_order_acquire);
    return 0;
}

const std::byte* LocalPlane::mapped(RegionId id) { return find(id).data(); }

}  // namespace penstock::dataplane
