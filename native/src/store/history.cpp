#include "store/history.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "errors.hpp"

namespace penstock {

namespace {
constexpr std::size_t kFirstRing = 64;
/// A view that excludes at most this number of commits reads the latest snapshot, so that operators can update their
/// state from the changes since the previous view.
constexpr std::size_t kFewExcluded = 1024;
/// The number under which a saved store lists the snapshot of keep() among the holds. No stream has it.
constexpr std::uint32_t kRetained = 0;
}  // namespace

std::size_t CommitRecord::bytes() const {
    std::size_t total = sizeof(CommitRecord) + logs.capacity() * sizeof(AppendLog);
    for (const AppendLog& log : logs) total += log.bytes();
    return total;
}

CommitHistory::CommitHistory() {
    rings_.push_back(std::make_unique<Ring>(kFirstRing));
    ring_.store(rings_.back().get(), std::memory_order_release);
}

CommitHistory::~CommitHistory() {
    for (Snapshot s = floor_; s < end_; ++s) delete find(s);
}

const CommitRecord* CommitHistory::find(Snapshot snapshot) const {
    // The reader met `snapshot` in a word that was stored after the release store that put the record into the ring. It
    // loaded the word with acquire, so this load returns a ring at least as new. The slot's acquire makes the record's
    // content visible.
    const Ring* ring = ring_.load(std::memory_order_acquire);
    return ring->slots[snapshot & (ring->slots.size() - 1)].load(std::memory_order_acquire);
}

void CommitHistory::reserve(Snapshot snapshot) {
    const Ring* old = ring_.load(std::memory_order_relaxed);
    const Snapshot floor = floor_.load(std::memory_order_relaxed);
    if (snapshot - floor < old->slots.size()) return;
    std::size_t capacity = old->slots.size();
    while (snapshot - floor >= capacity) capacity *= 2;
    auto ring = std::make_unique<Ring>(capacity);
    for (Snapshot s = floor; s < end_; ++s)
        ring->slots[s & (capacity - 1)].store(old->slots[s & (old->slots.size() - 1)].load(std::memory_order_relaxed),
                                              std::memory_order_relaxed);
    ring_.store(ring.get(), std::memory_order_release);  // publishes the copied slots
    rings_.push_back(std::move(ring));
}

bool CommitHistory::excludable(const CommitSource& source) const {
    if (source.stream == 0) return false;
    const auto stream = streams_.find(source.stream);
    return stream == streams_.end() || source.batch > stream->second.released;
}

bool CommitHistory::can_be_excluded(const CommitSource& source) const {
    std::scoped_lock lock(mutex_);
    return excludable(source);
}

bool CommitHistory::may_hide(std::size_t shard, layout::Offset entry, Snapshot last, ListVersion version,
                             std::uint32_t position, const CommitSource& reader) const {
    std::scoped_lock lock(mutex_);  // protects the records during the visit
    const Snapshot floor = floor_.load(std::memory_order_relaxed);
    for (Snapshot s = last; s >= floor;) {
        const CommitRecord* record = find(s);
        const Append append = version.translate(s, *record->logs[shard].find(entry));
        if (position >= append.before && position - append.before < append.count)
            return record->source.stream != reader.stream && excludable(record->source);
        s = append.previous;
    }
    return false;
}

std::uint32_t CommitHistory::settled_words(std::size_t shard, layout::Offset entry, std::uint64_t state) const {
    std::scoped_lock lock(mutex_);  // protects the records during the visit
    const Snapshot floor = floor_.load(std::memory_order_relaxed);
    std::uint32_t words = layout::length_of(state);
    for (Snapshot s = layout::last_of(state); s >= floor;) {
        const Append* append = find(s)->logs[shard].find(entry);
        words = append->before;
        s = append->previous;
    }
    return words;
}

void CommitHistory::add(std::unique_ptr<CommitRecord> record) {
    std::scoped_lock lock(mutex_);
    const Snapshot snapshot = record->snapshot;
    reserve(snapshot);
    bytes_.fetch_add(record->bytes(), std::memory_order_relaxed);  // a statistic; orders nothing
    Ring* ring = ring_.load(std::memory_order_relaxed);
    ring->slots[snapshot & (ring->slots.size() - 1)].store(record.release(), std::memory_order_release);
    end_ = snapshot + 1;
}

void CommitHistory::publish(Snapshot snapshot, CommitSource source) {
    std::scoped_lock lock(mutex_);
    if (source.stream != 0) {
        StreamCommits& stream = streams_[source.stream];
        if (source.batch > stream.released) {
            stream.held.emplace_back(source.batch, snapshot);
            held_.insert(snapshot);
        }
    }
    latest_.store(snapshot, std::memory_order_release);  // pairs with latest(): every word of the commit is visible
    collect();
}

Snapshot CommitHistory::oldest_reader() const {
    std::scoped_lock lock(mutex_);
    return readers_.empty() ? latest_.load(std::memory_order_relaxed) : *readers_.begin();
}

Visibility CommitHistory::lease(std::span<const StreamBound> bounds) {
    std::scoped_lock lock(mutex_);
    Visibility visibility{latest_.load(std::memory_order_relaxed), 0, {}};
    for (const StreamBound& bound : bounds) {
        const auto found = streams_.find(bound.stream);
        if (found == streams_.end()) continue;
        if (bound.batch < found->second.released)
            throw Error("stream " + std::to_string(bound.stream) + " is bounded at batch " +
                        std::to_string(bound.batch) + ", but was released up to " +
                        std::to_string(found->second.released));
        // Batches of one stream ascend with their snapshots.
        const auto& held = found->second.held;
        auto later = held.end();
        while (later != held.begin() && std::prev(later)->first > bound.batch) --later;
        const auto middle = static_cast<std::ptrdiff_t>(visibility.excluded.size());
        for (; later != held.end(); ++later) visibility.excluded.push_back(later->second);
        std::inplace_merge(visibility.excluded.begin(), visibility.excluded.begin() + middle,
                           visibility.excluded.end());
    }
    auto& excluded = visibility.excluded;
    excluded.erase(std::unique(excluded.begin(), excluded.end()), excluded.end());
    if (excluded.size() > kFewExcluded) {
        // A view of the past: a smaller snapshot leaves few commits to exclude.
        for (; !excluded.empty() && excluded.back() == visibility.snapshot; --visibility.snapshot) excluded.pop_back();
    }
    visibility.first_excluded = excluded.empty() ? visibility.snapshot + 1 : excluded.front();
    leases_.emplace(visibility.first_excluded, visibility.snapshot);
    readers_.insert(visibility.snapshot);
    return visibility;
}

Visibility CommitHistory::lease_at(Snapshot snapshot, std::vector<Snapshot> excluded) {
    if (!std::is_sorted(excluded.begin(), excluded.end()) || (!excluded.empty() && excluded.back() > snapshot))
        throw DataError("the commits that a view excludes are not ascending, or later than its snapshot");
    Visibility visibility{snapshot, excluded.empty() ? snapshot + 1 : excluded.front(), std::move(excluded)};
    std::scoped_lock lock(mutex_);
    if (snapshot > latest_.load(std::memory_order_relaxed))
        throw StorageError("snapshot " + std::to_string(snapshot) + " is not here yet");
    if (visibility.first_excluded < floor_.load(std::memory_order_relaxed))
        throw StorageError("snapshot " + std::to_string(snapshot) + " cannot be read any more");
    leases_.emplace(visibility.first_excluded, snapshot);
    readers_.insert(snapshot);
    return visibility;
}

Visibility CommitHistory::lease_past(Snapshot before, Snapshot after, std::span<const StreamBound> named,
                                     std::span<const StreamBound> others) {
    using Held = std::deque<std::pair<std::int64_t, Snapshot>>;
    std::scoped_lock lock(mutex_);
    if (before > after || after > latest_.load(std::memory_order_relaxed))
        throw StorageError("snapshot " + std::to_string(after) + " is not here yet");
    // Calls visit(its commits, the first one after its bound, whether the bound holds for earlier commits).
    const auto for_each_stream = [&](auto visit) {
        const auto visit_all = [&](std::span<const StreamBound> bounds, bool always) {
            for (const StreamBound& bound : bounds) {
                const auto found = streams_.find(bound.stream);
                if (found == streams_.end()) continue;
                const Held& held = found->second.held;
                const auto later = std::upper_bound(held.begin(), held.end(), bound.batch,
                                                    [](std::int64_t batch, const auto& c) { return batch < c.first; });
                visit(held, later, always);
            }
        };
        visit_all(named, true);
        visit_all(others, false);
    };
    // The smallest snapshot that contains all visible commits: few commits are then left to exclude. Batches of one
    // stream ascend with their snapshots.
    Snapshot snapshot = before;
    for_each_stream([&](const Held& held, Held::const_iterator later, bool) {
        const auto end = std::upper_bound(held.begin(), later, after,
                                          [](Snapshot s, const auto& commit) { return s < commit.second; });
        if (end != held.begin()) snapshot = std::max(snapshot, std::prev(end)->second);
    });
    Visibility visibility{snapshot, 0, {}};
    auto& excluded = visibility.excluded;
    for_each_stream([&](const Held& held, Held::const_iterator later, bool always) {
        for (; later != held.end() && later->second <= snapshot; ++later)
            if (always || later->second > before) excluded.push_back(later->second);
    });
    std::sort(excluded.begin(), excluded.end());
    visibility.first_excluded = excluded.empty() ? snapshot + 1 : excluded.front();
    if (visibility.first_excluded < floor_.load(std::memory_order_relaxed))
        throw StorageError("snapshot " + std::to_string(snapshot) + " cannot be read any more");
    leases_.emplace(visibility.first_excluded, snapshot);
    readers_.insert(snapshot);
    return visibility;
}

void CommitHistory::unlease(const Visibility& visibility) {
    std::scoped_lock lock(mutex_);
    leases_.erase(leases_.find({visibility.first_excluded, visibility.snapshot}));
    readers_.erase(readers_.find(visibility.snapshot));
    collect();
}

Snapshot CommitHistory::lease_from(Snapshot snapshot) {
    std::scoped_lock lock(mutex_);
    snapshot = std::min(snapshot, latest_.load(std::memory_order_relaxed));
    if (snapshot + 1 < floor_.load(std::memory_order_relaxed))
        throw StorageError("snapshot " + std::to_string(snapshot) + " cannot be read any more");
    leases_.emplace(snapshot + 1, snapshot);
    readers_.insert(snapshot);
    return snapshot;
}

void CommitHistory::unlease_from(Snapshot snapshot) {
    std::scoped_lock lock(mutex_);
    leases_.erase(leases_.find({snapshot + 1, snapshot}));
    readers_.erase(readers_.find(snapshot));
    collect();
}

void CommitHistory::release(std::uint32_t stream, std::int64_t batch) {
    std::scoped_lock lock(mutex_);
    StreamCommits& commits = streams_[stream];
    commits.requested = std::max(commits.requested, batch);
    drop_released(commits);
    collect();
}

void CommitHistory::drop_released(StreamCommits& stream) {
    // A bound at batch b itself still includes b, so the commit of b can then no longer be excluded.
    auto& held = stream.held;
    while (!held.empty() && held.front().first <= stream.requested &&
           !(retained_ && held.front().second > *retained_)) {
        held_.erase(held.front().second);
        held.pop_front();
    }
    const bool retained = !held.empty() && held.front().first <= stream.requested;
    stream.released = std::max(stream.released, retained ? held.front().first - 1 : stream.requested);
}

void CommitHistory::keep(std::optional<Snapshot> snapshot) {
    std::scoped_lock lock(mutex_);
    if (snapshot && *snapshot + 1 < floor_.load(std::memory_order_relaxed))
        throw StorageError("snapshot " + std::to_string(*snapshot) + " cannot be read any more");
    const std::optional<Snapshot> before = retained_;
    if (snapshot) lease_retained(*snapshot);
    retained_ = snapshot;
    if (before) {
        leases_.erase(leases_.find({*before + 1, *before}));
        readers_.erase(readers_.find(*before));
    }
    for (auto& [number, stream] : streams_) drop_released(stream);
    collect();
}

void CommitHistory::lease_retained(Snapshot snapshot) {
    leases_.emplace(snapshot + 1, snapshot);
    readers_.insert(snapshot);
}

void CommitHistory::collect() {
    Snapshot floor = latest_.load(std::memory_order_relaxed) + 1;
    if (!leases_.empty()) floor = std::min(floor, leases_.begin()->first);
    if (!held_.empty()) floor = std::min(floor, *held_.begin());
    Ring* ring = ring_.load(std::memory_order_relaxed);
    Snapshot s = floor_.load(std::memory_order_relaxed);
    for (; s < floor && s < end_; ++s) {
        std::unique_ptr<CommitRecord> record(ring->slots[s & (ring->slots.size() - 1)].load(std::memory_order_relaxed));
        if (record) bytes_.fetch_sub(record->bytes(), std::memory_order_relaxed);
        ring->slots[s & (ring->slots.size() - 1)].store(nullptr, std::memory_order_relaxed);
    }
    floor_.store(floor, std::memory_order_relaxed);
    end_ = std::max(end_, floor);
}

std::vector<CommitHistory::Hold> CommitHistory::holds() const {
    std::scoped_lock lock(mutex_);
    std::vector<Hold> holds;
    holds.reserve(streams_.size() + 1);
    for (const auto& [number, stream] : streams_) holds.push_back({number, stream.released});
    if (retained_) holds.push_back({kRetained, static_cast<std::int64_t>(*retained_)});
    return holds;
}

void CommitHistory::restore(Snapshot latest, std::span<const Hold> holds,
                            std::vector<std::unique_ptr<CommitRecord>> records) {
    {
        std::scoped_lock lock(mutex_);
        for (const Hold& hold : holds) {
            if (hold.released == kNever) continue;  // also of stream 0, in stores that were saved before keep() existed
            if (hold.stream == kRetained) {
                retained_ = static_cast<Snapshot>(hold.released);
                lease_retained(*retained_);
            } else {
                streams_[hold.stream].requested = streams_[hold.stream].released = hold.released;
            }
        }
        const Snapshot first = records.empty() ? latest + 1 : records.front()->snapshot;
        floor_.store(first, std::memory_order_relaxed);
        end_ = first;
        latest_.store(first - 1, std::memory_order_release);
    }
    for (auto& record : records) {
        const Snapshot snapshot = record->snapshot;
        const CommitSource source = record->source;
        add(std::move(record));
        std::scoped_lock lock(mutex_);
        if (source.stream == 0) continue;  // no entry for it: holds() would list it under the number of keep()
        StreamCommits& stream = streams_[source.stream];
        if (source.batch <= stream.released) continue;
        stream.held.emplace_back(source.batch, snapshot);
        held_.insert(snapshot);
    }
    std::scoped_lock lock(mutex_);
    latest_.store(latest, std::memory_order_release);
    collect();
}

}  // namespace penstock
