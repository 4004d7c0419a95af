// Stores that keep parts of one graph, as nodes do, and an engine's store that reads them through a plane.
#pragma once

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "dataplane/local_plane.hpp"
#include "remote/remote_store.hpp"
#include "store/layout.hpp"
#include "store_fixture.hpp"

namespace penstock::test {

/// The local plane as if no region were mapped: everything is copied, as from another machine. With `meanwhile`, the
/// words of some reads are of two moments, in any order: between them it calls that function. `earlier` selects words
/// of the first moment.
class CopyingPlane final : public dataplane::Plane {
public:
    void attach(const dataplane::RegionEntry& entry) { local_.attach(entry); }
    std::vector<dataplane::RegionEntry> directory(dataplane::Node node) override { return local_.directory(node); }
    Ticket post(std::span<const dataplane::Read> reads) override {
        this->reads += reads.size();
        const Ticket ticket = local_.post(reads);
        if (meanwhile && tears()) tear(reads);
        return ticket;
    }
    void wait(Ticket ticket) override { local_.wait(ticket); }
    std::string_view transport(dataplane::Node node) const override { return local_.transport(node); }
    std::uint64_t reads = 0;
    std::function<void()> meanwhile;
    std::function<bool(std::uint64_t before, std::uint64_t after)> earlier = [this](auto, auto) {
        return random_() % 2 == 0;
    };
    std::function<bool()> tears = [this] { return random_() % 3 == 0; };

private:
    void tear(std::span<const dataplane::Read> reads) {
        std::vector<std::vector<std::byte>> first;
        for (const dataplane::Read& read : reads) first.emplace_back(read.into, read.into + read.length);
        meanwhile();
        local_.post(reads);
        for (std::size_t i = 0; i < reads.size(); ++i)
            for (std::uint32_t at = 0; at < reads[i].length; at += 8) {
                std::uint64_t before = 0, after = 0;
                std::memcpy(&before, first[i].data() + at, 8);
                std::memcpy(&after, reads[i].into + at, 8);
                if (before != after && earlier(before, after)) std::memcpy(reads[i].into + at, &before, 8);
            }
    }

    dataplane::LocalPlane local_;
    std::mt19937_64 random_{5};
};

inline dataplane::RegionEntry shard_entry(const std::string& path, dataplane::Node node, std::uint32_t number) {
    const dataplane::MappedRegion region(path, kReserve);
    layout::Header header{};
    std::memcpy(&header, region.data(), sizeof header);
    dataplane::RegionEntry entry;
    entry.id = {node, number};
    entry.kind = dataplane::RegionKind::Shard;
    entry.subject = header.shard;
    entry.epoch = header.epoch;
    entry.reserve_bytes = header.reserve_bytes;
    entry.device = region.device();
    entry.inode = region.inode();
    entry.path = path;
    return entry;
}

/// `nodes` stores in this process, shard s at node s mod nodes. Commits go to all of them, or to one after the other.
struct NodesFixture {
    NodesFixture(std::size_t shards, std::size_t nodes, bool copying,
                 std::size_t known_bytes = remote::RemoteStore::kKnownBytes)
        : shards(shards), remote(std::make_unique<remote::RemoteStore>(shards, known_bytes)) {
        for (std::size_t n = 0; n < nodes; ++n) {
            StoreOptions options{.shards = shards, .own = {}, .reserve_bytes = kReserve, .publish_logs = true};
            for (std::size_t s = n; s < shards; s += nodes) options.own.push_back(static_cast<std::uint32_t>(s));
            stores.push_back(std::make_unique<Store>(directory(n), options));
        }
        for (std::size_t n = 0; n < nodes; ++n) {
            const auto node = static_cast<dataplane::Node>(n);
            if (copying)
                remote->attach(node, attached(node, copies.emplace_back(std::make_shared<CopyingPlane>())));
            else
                remote->attach(node, attached(node, std::make_shared<dataplane::LocalPlane>()));
        }
        renew();
    }

    std::string directory(std::size_t node) const { return scratch / ("node-" + std::to_string(node)); }
    template <class Plane>
    std::shared_ptr<dataplane::Plane> attached(dataplane::Node node, std::shared_ptr<Plane> plane) const {
        for (std::uint32_t s = node; s < shards; s += static_cast<std::uint32_t>(stores.size()))
            plane->attach(shard_entry(directory(node) + "/shard-" + std::to_string(s) + ".region", node, s));
        return plane;
    }
    std::uint64_t reads() const {
        std::uint64_t total = 0;
        for (const auto& plane : copies) total += plane->reads;
        return total;
    }
    Label label(std::uint64_t predicate) { return remote->labels().intern(0, iri(predicate)); }
    void apply(std::size_t node, Snapshot snapshot, const std::vector<Edge>& edges, CommitSource source) {
        stores[node]->apply(snapshot, edges, source);
    }
    void apply(std::size_t node, Snapshot snapshot, const std::vector<Edge>& removed, const std::vector<Edge>& added,
               CommitSource source) {
        stores[node]->apply(snapshot, removed, added, source);
    }
    Snapshot add(const std::vector<Edge>& edges, std::uint32_t stream = 0, std::int64_t batch = 0) {
        const Snapshot snapshot = stores[0]->latest() + 1;
        for (std::size_t n = 0; n < stores.size(); ++n) apply(n, snapshot, edges, {stream, batch});
        return snapshot;
    }
    void release(std::uint32_t stream, std::int64_t batch) {
        remote->release(stream, batch);
        for (auto& store : stores) store->release(stream, batch);
    }
    /// New leases in place of the old ones, for the snapshots that are needed from now on.
    void renew() {
        std::vector<std::unique_ptr<StoreLease>> next;
        const Snapshot needed = remote->oldest_needed();
        for (auto& store : stores) next.push_back(store->lease(needed));
        leases.swap(next);
        remote->lease(needed, std::chrono::steady_clock::now() + std::chrono::hours(1));
    }

    std::size_t shards;
    ScratchDirectory scratch;
    std::vector<std::unique_ptr<Store>> stores;
    std::vector<std::unique_ptr<StoreLease>> leases;  // go before the stores
    std::vector<std::shared_ptr<CopyingPlane>> copies;
    std::unique_ptr<remote::RemoteStore> remote;
};

}  // namespace penstock::test
