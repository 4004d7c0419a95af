// The stored graph as an engine reads it from nodes: every shard one-sidedly, through the data plane (ADR 16, ADR 18;
// docs/adr/0016). Nobody on the other side takes part, so what a view needs must stay by leases: a lease says how long.
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

/// Where records of hot vertices lie: they do not move while the shard's epoch lasts. Lossy, bounded, any thread.
class LocationCache {
public:
    static constexpr std::size_t kPlaces = std::size_t{1} << 17;
    LocationCache() : places_(kPlaces) {}
    layout::Offset find(std::uint64_t epoch, TermId vertex, Dir dir) const;  // 0 where unknown
    void remember(std::uint64_t epoch, TermId vertex, Dir dir, layout::Offset record);

private:
    // A racing pair of stores leaves words of two records: then their exclusive or is no key that anybody asks for.
    struct Place {
        std::atomic<std::uint64_t> mixed{0};  // key ^ record; relaxed: checked by its own content
        std::atomic<std::uint64_t> record{0};
    };
    static std::uint64_t key_of(std::uint64_t epoch, TermId vertex, Dir dir);
    mutable std::vector<Place> places_;
};

/// Any thread; reads by one plane go one batch after the other. Outlives its views.
class RemoteStore final : public Labelled {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t kKnownBytes = std::size_t{128} << 20;  // of lists that lie on other machines
    static constexpr auto kCountsAge = std::chrono::seconds(1);

    explicit RemoteStore(std::size_t shards, std::size_t known_bytes = kKnownBytes);
    ~RemoteStore() override;

    /// Numbers of labels must be those that the nodes know: whoever numbers commits numbers labels too.
    LabelTable& labels() override { return labels_; }
    std::size_t shard_count() const { return shards_; }

    /// The shards in the node's directory, or those of them that are named, lie there from now on, and are read by this
    /// plane, which nobody else uses. Views that are open go on with where they lay. dataplane::Error.
    using Numbers = std::optional<std::vector<std::uint32_t>>;
    void attach(dataplane::Node node, std::shared_ptr<dataplane::Plane> plane, const Numbers& shards = {});

    /// Forgets a node whose shards were attached elsewhere, or are read no more.
    void detach(dataplane::Node node);

    /// Asks the nodes' directories again: a stream's slices are there once it was declared.
    void refresh();
    /// A region with slices. A node that comes back may give the same number again, but not the same epoch.
    struct SliceRegion {
        dataplane::RegionId id;
        std::uint64_t epoch = 0;
        bool operator==(const SliceRegion&) const = default;
    };
    /// Of each node the region with its slices of that stream.
    std::vector<std::pair<dataplane::Node, SliceRegion>> slice_regions(std::uint32_t stream) const;
    /// Does a batch of reads. dataplane::Error.
    void read(std::span<const dataplane::Read> reads);

    /// All nodes keep what readers of `snapshot` or later need until then, by this machine's clock.
    void lease(Snapshot snapshot, Clock::time_point until);
    /// What the next lease has to begin at, so that every open view keeps its logs, those of commits that it excludes
    /// included; where none is open, `otherwise`, or the latest snapshot that one began on. A stream's bounds may be
    /// released once a lease of that snapshot is granted.
    Snapshot oldest_needed(std::optional<Snapshot> otherwise = {}) const;

    /// Nobody will ask for a bound of this stream below `batch` any more. Nodes are told with the next lease.
    void release(std::uint32_t stream, std::int64_t batch);
    /// (stream, batch) of all releases so far: take them before oldest_needed(), and send both.
    std::vector<StreamBound> releases() const;

    /// The latest snapshot that every shard has published. Each shard's header is read.
    Snapshot latest();
    /// Every node has said that it has published this snapshot: views of it or an older one begin by one read of the
    /// headers in place of two.
    void published(Snapshot snapshot);
    /// Stable_VTS (Wukong+S §4.3): of each stream the last batch that every shard has closed, kNever where one has
    /// none.
    std::vector<std::int64_t> stable_vts(std::span<const std::uint32_t> streams);

    /// The graph at the latest stable snapshot, less what the bounded streams committed after their bounds. Fails with
    /// dataplane::Error: a node is gone, a shard was replaced (attach it and try again), the lease has run out. So do
    /// the view's reads; StorageError is for what cannot be a shard's. `at`: that snapshot in place of the latest, for
    /// a reader who must not see what nodes are ahead of it; where a node has not come to it, the fault is Behind.
    std::unique_ptr<Source> view(std::span<const StreamBound> bounds = {}, std::optional<Snapshot> at = {});

    std::uint64_t edge_count();
    std::uint64_t rounds() const { return rounds_.load(std::memory_order_relaxed); }  // of reads so far

private:
    friend class RemoteView;
    struct Place {
        dataplane::RegionId region;
        std::uint64_t epoch = 0;
        const std::byte* base = nullptr;
        std::shared_ptr<dataplane::Plane> plane;  // keeps what is mapped
    };
    using Places = std::vector<Place>;
    struct Headers {
        std::vector<layout::Header> at;
        Snapshot published;  // by all
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
        Numbers shards;  // of which others may lie there too
    };

    std::shared_ptr<const Places> places() const;
    void place(dataplane::Node node, const Attached& attached);
    Headers read_headers(const std::shared_ptr<const Places>& places);
    void know_published(const std::shared_ptr<const Places>& places, Snapshot snapshot);
    Headers headers_of(const std::shared_ptr<const Places>& places, std::optional<Snapshot> at);
    void check_alive(const Place& place, std::uint32_t shard, const layout::Header& header) const;
    /// Throws where what the lease kept may be gone by now.
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
    mutable std::mutex mutex_;  // all below
    std::shared_ptr<const Places> places_;
    std::shared_ptr<const Places> published_places_;  // whose shards have all published ...
    Snapshot published_ = 0;                          // ... this, as somebody knew before now
    std::unordered_map<Label, Count> counts_;
    std::map<std::pair<std::uint32_t, dataplane::Node>, SliceRegion> slices_;  // by stream and node
    std::multiset<Snapshot> open_;  // of each view the snapshot that its lease must begin at
    Snapshot newest_ = 0, leased_ = 0;
    std::optional<Clock::time_point> leased_until_;
    std::map<std::uint32_t, std::int64_t> released_;

    std::mutex commits_mutex_;     // the rest
    std::vector<Commit> commits_;  // of streams, ascending, as far as they were read: what bounds may exclude
    Snapshot learned_ = 0;
};

}  // namespace penstock::remote
