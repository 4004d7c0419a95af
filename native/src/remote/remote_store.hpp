// The stored graph as an engine reads it from nodes: one-sidedly from every shard, through the data plane (ADR 16, ADR
// 18; docs/adr/0016). The nodes do not take part in reads. A lease therefore protects the data that a view needs, until
// the lease expires.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "dataplane/router.hpp"
#include "remote/copies.hpp"
#include "remote/known_lists.hpp"
#include "remote/shard_memory.hpp"
#include "source.hpp"
#include "store/commit.hpp"
#include "store/labels.hpp"
#include "store/visibility.hpp"

namespace penstock::remote {

/// A cache of record offsets of hot vertices; records do not move within a shard's epoch. Lossy, bounded, thread-safe.
class LocationCache {
public:
    static constexpr std::size_t kPlaces = std::size_t{1} << 17;
    LocationCache() : places_(kPlaces) {}
    layout::Offset find(std::uint64_t epoch, TermId vertex, Dir dir) const;  // 0 if unknown
    void put(std::uint64_t epoch, TermId vertex, Dir dir, layout::Offset record);

private:
    // After two racing stores, the two words can be from two records. Their exclusive or then matches no valid key.
    struct Place {
        std::atomic<std::uint64_t> mixed{0};  // key ^ record; relaxed, because its own content validates it
        std::atomic<std::uint64_t> record{0};
    };
    static std::uint64_t key_of(std::uint64_t epoch, TermId vertex, Dir dir);
    mutable std::vector<Place> places_;
};

/// Thread-safe; batches of reads on one plane run one after the other. Must outlive its views.
class RemoteStore final : public Labelled {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t kKnownBytes = std::size_t{128} << 20;  // for lists on other machines
    static constexpr auto kCountsAge = std::chrono::seconds(1);

    explicit RemoteStore(std::size_t shards, std::size_t known_bytes = kKnownBytes);
    ~RemoteStore() override;

    /// Label numbers must be those of the nodes: the component that numbers commits also numbers labels.
    LabelTable& labels() override { return labels_; }
    std::size_t shard_count() const { return shards_; }

    /// From now on, the shards in the node's directory, or only the named shards, are read from this node through
    /// `plane`. The plane must have no other user. Open views continue with the previous locations. dataplane::Error.
    using Numbers = std::optional<std::vector<std::uint32_t>>;
    void attach(dataplane::Node node, std::shared_ptr<dataplane::Plane> plane, const Numbers& shards = {});

    /// Removes a node whose shards are attached to another node or no longer read.
    void detach(dataplane::Node node);

    /// Performs a batch of reads. dataplane::Error.
    void read(std::span<const dataplane::Read> reads);

    /// Records a lease that all nodes have granted. Until the given time, by this machine's clock, the nodes retain the
    /// data that readers of `snapshot` or a later snapshot need.
    void lease(Snapshot snapshot, Clock::time_point until);
    /// The snapshot at which the next lease must begin. The lease then retains the logs of all open views, including
    /// the logs of commits that the views exclude. Without open views: `otherwise`, or the latest snapshot at which a
    /// view has begun. When a lease of this snapshot is granted, bounds on streams can be released.
    Snapshot oldest_needed(std::optional<Snapshot> otherwise = {}) const;

    /// Promises that no later view has a bound of this stream before `batch`.
    void release(std::uint32_t stream, std::int64_t batch);
    /// The latest snapshot that every shard has published. Reads each shard's header.
    Snapshot latest();
    /// The graph at the latest stable snapshot, without the commits of the bounded streams after their bounds. This
    /// call, and each read of the view, throws dataplane::Error if a node is unreachable, if a shard was replaced
    /// (attach the shard and retry), or if the lease has expired. StorageError if the data cannot be the data of a
    /// shard. `at` replaces the latest snapshot, for a reader that must not see later commits of nodes that are ahead.
    /// If a node has not reached `at`, the fault is Behind.
    std::unique_ptr<Source> view(std::span<const StreamBound> bounds = {}, std::optional<Snapshot> at = {});

    std::uint64_t edge_count();
    std::uint64_t rounds() const { return rounds_.load(std::memory_order_relaxed); }  // of reads

private:
    friend class RemoteView;
    struct Place {
        dataplane::RegionId region;
        std::uint64_t epoch = 0;
        const std::byte* base = nullptr;
        std::shared_ptr<dataplane::Plane> plane;  // owns the mappings
    };
    using Places = std::vector<Place>;
    struct Headers {
        std::vector<layout::Header> at;
        Snapshot published;  // by all shards
    };
    struct Commit {
        Snapshot snapshot;
        CommitSource source;
    };
    struct Count {
        std::uint64_t edges;
        Clock::time_point at;
    };

    struct Attached {
        std::shared_ptr<dataplane::Plane> plane;
        Numbers shards;  // if set, only these shards are read from the node
    };

    std::shared_ptr<const Places> places() const;
    void place(dataplane::Node node, const Attached& attached);
    Headers read_headers(const std::shared_ptr<const Places>& places);
    void know_published(const std::shared_ptr<const Places>& places, Snapshot snapshot);
    Headers headers_of(const std::shared_ptr<const Places>& places, std::optional<Snapshot> at);
    void check_alive(const Place& place, std::uint32_t shard, const layout::Header& header) const;
    /// Throws if the lease possibly does not protect the data any more.
    void check_lease(Snapshot snapshot) const;
    void learn_commits(const Place& place, const layout::Header& header, Snapshot until);
    Visibility visibility(const Place& place, const layout::Header& header, Snapshot snapshot,
                          std::span<const StreamBound> bounds);
    void began(Snapshot from);
    void closed(Snapshot from);
    void count_edges(Label label, std::uint64_t edges);
    std::optional<std::uint64_t> edges_lately(Label label) const;

    std::size_t shards_;
    LabelTable labels_;
    LocationCache locations_;
    KnownLists known_;
    std::atomic<std::uint64_t> rounds_{0};
    Reader reader_;

    std::mutex plane_mutex_;
    dataplane::Router router_;
    std::map<dataplane::Node, Attached> planes_;
    mutable std::mutex mutex_;  // guards all members below
    std::shared_ptr<const Places> places_;
    std::shared_ptr<const Places> published_places_;  // all shards at these places have published ...
    Snapshot published_ = 0;                          // ... this snapshot, according to an earlier read
    std::unordered_map<Label, Count> counts_;
    std::multiset<Snapshot> open_;  // for each view, the snapshot at which its lease must begin
    Snapshot newest_ = 0, leased_ = 0;
    std::optional<Clock::time_point> leased_until_;
    std::map<std::uint32_t, std::int64_t> released_;

    std::mutex commits_mutex_;     // guards the members below
    std::vector<Commit> commits_;  // commits of streams that were read so far, ascending: bounds can exclude them
    Snapshot learned_ = 0;
};

}  // namespace penstock::remote
