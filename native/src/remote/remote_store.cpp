#include "remote/remote_store.hpp"

#include <algorithm>
#include <string>

#include "errors.hpp"
#include "mix.hpp"
#include "remote/remote_view.hpp"

namespace penstock::remote {

using dataplane::Fault;
using dataplane::Read;
using dataplane::RegionEntry;
using dataplane::RegionId;
using layout::CommitEntry;
using layout::CommitRing;
using layout::Header;

namespace {

constexpr std::uint32_t kHeaderBytes = sizeof(Header);
static_assert(sizeof(Header) % 8 == 0);

Read read_of(RegionId region, std::uint64_t offset, std::uint64_t bytes, void* into) {
    return {region, offset, static_cast<std::uint32_t>(bytes), static_cast<std::byte*>(into)};
}

}  // namespace

// ---- location cache

std::uint64_t LocationCache::key_of(std::uint64_t epoch, TermId vertex, Dir dir) {
    return mix(vertex * 2 + static_cast<std::uint64_t>(dir)) ^ epoch;
}

layout::Offset LocationCache::find(std::uint64_t epoch, TermId vertex, Dir dir) const {
    const std::uint64_t key = key_of(epoch, vertex, dir);
    const Place& place = places_[key % kPlaces];
    const std::uint64_t record = place.record.load(std::memory_order_relaxed);
    return (place.mixed.load(std::memory_order_relaxed) ^ record) == key ? record : 0;
}

void LocationCache::put(std::uint64_t epoch, TermId vertex, Dir dir, layout::Offset record) {
    const std::uint64_t key = key_of(epoch, vertex, dir);
    Place& place = places_[key % kPlaces];
    place.record.store(record, std::memory_order_relaxed);
    place.mixed.store(key ^ record, std::memory_order_relaxed);
}

// ---- places and leases

RemoteStore::RemoteStore(std::size_t shards, std::size_t known_bytes)
    : shards_(shards), known_(known_bytes), places_(std::make_shared<Places>(shards)) {
    if (shards == 0 || shards > 4096) throw LimitError("a store has 1 to 4096 shards");
    reader_ = [this](std::span<const Read> reads) { read(reads); };
}
RemoteStore::~RemoteStore() = default;

/// Adopts the node's directory, from its plane. plane_mutex_ must be held.
void RemoteStore::place(dataplane::Node node, const Attached& attached) {
    const auto& [plane, shards] = attached;
    const std::vector<RegionEntry> entries = plane->directory(node);
    std::scoped_lock lock(mutex_);
    auto places = std::make_shared<Places>(*places_);
    for (const RegionEntry& entry : entries) {
        if (entry.kind != dataplane::RegionKind::Shard) continue;
        if (entry.subject >= shards_) throw DataError("there is no shard " + std::to_string(entry.subject));
        if (shards && std::find(shards->begin(), shards->end(), entry.subject) == shards->end()) continue;
        (*places)[entry.subject] = {entry.id, entry.epoch, plane->mapped(entry.id), plane};
    }
    places_ = std::move(places);
}

void RemoteStore::attach(dataplane::Node node, std::shared_ptr<dataplane::Plane> plane, const Numbers& shards) {
    std::scoped_lock lock(plane_mutex_);
    place(node, {plane, shards});
    router_.add(node, plane);
    planes_[node] = {std::move(plane), shards};
}

void RemoteStore::detach(dataplane::Node node) {
    std::scoped_lock lock(plane_mutex_);
    router_.remove(node);
    planes_.erase(node);
}

std::shared_ptr<const RemoteStore::Places> RemoteStore::places() const {
    std::scoped_lock lock(mutex_);
    return places_;
}

void RemoteStore::lease(Snapshot snapshot, Clock::time_point until) {
    std::scoped_lock lock(mutex_);
    leased_ = snapshot;
    leased_until_ = until;
}

Snapshot RemoteStore::oldest_needed(std::optional<Snapshot> otherwise) const {
    std::scoped_lock lock(mutex_);
    return open_.empty() ? otherwise.value_or(newest_) : *open_.begin();
}

// A node discards what a lease protects only after the lease has expired by the node's clock, which started later than
// ours. While the lease is valid by our clock, no memory read before this moment can have been reused.
void RemoteStore::check_lease(Snapshot snapshot) const {
    std::scoped_lock lock(mutex_);
    if (!leased_until_ || Clock::now() >= *leased_until_)
        throw dataplane::Error(Fault::TimedOut,
                               "the lease on the nodes' shards has run out: what was read may be gone");
    if (snapshot < leased_)
        throw dataplane::Error(
            Fault::Behind, "snapshot " + std::to_string(snapshot) + " is older than what is leased: a node is behind");
}

void RemoteStore::release(std::uint32_t stream, std::int64_t batch) {
    std::scoped_lock lock(mutex_);
    std::int64_t& released = released_.try_emplace(stream, batch).first->second;
    released = std::max(released, batch);
}

void RemoteStore::began(Snapshot from) {
    std::scoped_lock lock(mutex_);
    open_.insert(from);
}

void RemoteStore::closed(Snapshot from) {
    std::scoped_lock lock(mutex_);
    open_.erase(open_.find(from));
}

void RemoteStore::count_edges(Label label, std::uint64_t edges) {
    std::scoped_lock lock(mutex_);
    counts_[label] = {edges, Clock::now()};
}

std::optional<std::uint64_t> RemoteStore::edges_lately(Label label) const {
    std::scoped_lock lock(mutex_);
    const auto count = counts_.find(label);
    if (count == counts_.end() || Clock::now() - count->second.at > kCountsAge) return {};
    return count->second.edges;
}

// ---- headers

void RemoteStore::read(std::span<const Read> reads) {
    std::scoped_lock lock(plane_mutex_);
    router_.read(reads);
    rounds_.fetch_add(1, std::memory_order_relaxed);  // a statistic; orders nothing
}

void RemoteStore::check_alive(const Place& place, std::uint32_t shard, const Header& header) const {
    if (header.magic != layout::kMagic || header.version != layout::kVersion)
        throw StorageError("shard " + std::to_string(shard) + " is no region of this version");
    const bool retired = header.status != static_cast<std::uint64_t>(layout::RegionStatus::Live);
    if (header.epoch != place.epoch || retired)
        throw dataplane::Error(Fault::Retired, "shard " + std::to_string(shard) + " has moved to another node");
}

RemoteStore::Headers RemoteStore::read_headers(const std::shared_ptr<const Places>& at) {
    const Places& places = *at;
    Headers headers{std::vector<Header>(shards_), 0};
    std::vector<Read> reads;
    for (std::uint32_t i = 0; i < shards_; ++i) {
        if (places[i].plane == nullptr)
            throw dataplane::Error(Fault::Disconnected, "no node serves shard " + std::to_string(i));
        reads.push_back(read_of(places[i].region, 0, kHeaderBytes, &headers.at[i]));
    }
    read(reads);
    headers.published = ~Snapshot{0};
    for (std::uint32_t i = 0; i < shards_; ++i) {
        check_alive(places[i], i, headers.at[i]);
        headers.published = std::min(headers.published, static_cast<Snapshot>(headers.at[i].published));
    }
    know_published(at, headers.published);
    return headers;
}

void RemoteStore::know_published(const std::shared_ptr<const Places>& places, Snapshot snapshot) {
    std::scoped_lock lock(mutex_);
    if (places != places_) return;
    published_ = published_places_ == places ? std::max(published_, snapshot) : snapshot;
    published_places_ = places;
}

/// The headers for a view of the latest snapshot, or of `at`. There is no order between the words of one read, and
/// everything reached from the headers must be as new as the snapshot. The snapshot must therefore be known to be
/// published before the read was posted; otherwise the headers are read again.
RemoteStore::Headers RemoteStore::headers_of(const std::shared_ptr<const Places>& places, std::optional<Snapshot> at) {
    Snapshot known = 0;
    {
        std::scoped_lock lock(mutex_);
        if (published_places_ == places) known = published_;
    }
    Headers headers = read_headers(places);
    const Snapshot target = at.value_or(headers.published);
    if (target <= known || target > headers.published) return headers;
    const Snapshot published = headers.published;
    headers = read_headers(places);
    headers.published = published;
    return headers;
}

Snapshot RemoteStore::latest() { return read_headers(places()).published; }

std::uint64_t RemoteStore::edge_count() {
    std::uint64_t total = 0;
    for (const Header& header : read_headers(places()).at) total += header.edges;
    return total;
}

// ---- views

// Every shard has every commit in its ring, so one shard's ring suffices.
void RemoteStore::learn_commits(const Place& place, const Header& header, Snapshot until) {
    std::erase_if(commits_, [&](const Commit& commit) { return commit.snapshot < header.oldest_readable; });
    const Snapshot first = std::max(static_cast<Snapshot>(header.oldest_readable), learned_ + 1);
    if (first > until) return;
    if (header.commits == 0) throw StorageError("the nodes publish no logs of their commits");
    std::vector<CommitEntry> entries(until - first + 1);
    std::vector<Read> reads;
    const std::uint64_t capacity = CommitRing::capacity(header.commits);
    for (Snapshot at = first; at <= until;) {  // up to the ring's wrap-around
        const auto n = std::min<std::uint64_t>(until - at + 1, capacity - (at & (capacity - 1)));
        reads.push_back(read_of(place.region, CommitRing::entry_at(header.commits, at), n * sizeof(CommitEntry),
                                &entries[at - first]));
        at += static_cast<Snapshot>(n);
    }
    read(reads);
    for (const CommitEntry& entry : entries) {
        const auto at = static_cast<Snapshot>(first + (&entry - entries.data()));
        // A log that no view needs may be discarded between the two reads; a new view does not look for it.
        if (entry.snapshot != at)
            throw dataplane::Error(Fault::Retired, "commit " + std::to_string(at) + " has no log any more");
        if (entry.stream != 0) commits_.push_back({at, {entry.stream, entry.batch}});
    }
    learned_ = until;
}

Visibility RemoteStore::visibility(const Place& place, const Header& header, Snapshot snapshot,
                                   std::span<const StreamBound> bounds) {
    Visibility visibility{snapshot, snapshot + 1, {}};
    if (bounds.empty()) return visibility;
    std::scoped_lock lock(commits_mutex_);
    learn_commits(place, header, snapshot);
    for (const Commit& commit : commits_) {
        const auto hides = [&](const StreamBound& bound) {
            return bound.stream == commit.source.stream && commit.source.batch > bound.batch;
        };
        if (commit.snapshot <= snapshot && std::any_of(bounds.begin(), bounds.end(), hides))
            visibility.excluded.push_back(commit.snapshot);
    }
    if (!visibility.excluded.empty()) visibility.first_excluded = visibility.excluded.front();
    return visibility;
}

std::unique_ptr<Source> RemoteStore::view(std::span<const StreamBound> bounds, std::optional<Snapshot> at) {
    const auto places = this->places();
    const Headers headers = headers_of(places, at);
    const Snapshot snapshot = at.value_or(headers.published);
    {
        std::scoped_lock lock(mutex_);
        if (headers.published < snapshot || snapshot < newest_)
            throw dataplane::Error(Fault::Behind, "a node is behind the snapshot that was read last: wait for it");
        for (const StreamBound& bound : bounds)
            if (const auto known = released_.find(bound.stream);
                known != released_.end() && bound.batch < known->second)
                throw Error("stream " + std::to_string(bound.stream) + " was released beyond batch " +
                            std::to_string(bound.batch));
        newest_ = snapshot;
        open_.insert(snapshot);
    }
    auto view = std::make_unique<RemoteView>(*this, places, snapshot);  // its destructor closes the snapshot
    for (std::uint32_t i = 0; i < shards_; ++i) view->add({i, (*places)[i].region, (*places)[i].base, headers.at[i]});
    view->see(visibility(places->front(), headers.at[0], snapshot, bounds));
    check_lease(snapshot);
    return view;
}

}  // namespace penstock::remote
