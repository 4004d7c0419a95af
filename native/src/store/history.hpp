// The commits that a reader possibly still has to distinguish. Contains their append logs, the snapshots in use
// (leases), and the streams for which a view can still have a bound before the newest batch (holds).
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/append_log.hpp"
#include "store/commit.hpp"
#include "store/visibility.hpp"

namespace penstock {

struct CommitRecord {
    Snapshot snapshot = 0;
    CommitSource source;
    std::vector<AppendLog> logs;  // by shard
    std::size_t bytes() const;
};

/// Invariant: every commit from the floor on has a record, and every older commit is visible to all readers. A chain of
/// Append::previous therefore never breaks above the floor. The floor is the first commit that a live view excludes or
/// that a bound on a stream may still exclude.
class CommitHistory {
public:
    CommitHistory();
    ~CommitHistory();

    /// The record of a commit. The commit must be at or after the first commit that the reader excludes. Thread-safe;
    /// takes no lock.
    const CommitRecord* find(Snapshot snapshot) const;

    Snapshot latest() const { return latest_.load(std::memory_order_acquire); }

    // -- the writer
    Snapshot floor() const { return floor_.load(std::memory_order_relaxed); }
    /// Whether a bound that a future view may request could exclude a commit of this source.
    bool can_be_excluded(const CommitSource& source) const;
    /// Whether such a bound could include a commit of the source `reader`, and exclude the commit that stored this
    /// position of a list.
    bool may_hide(std::size_t shard, layout::Offset entry, Snapshot last, ListVersion version, std::uint32_t position,
                  const CommitSource& reader) const;
    /// The number of words of a list that are from commits that every reader sees. No commit at or after the floor has
    /// rewritten the list.
    std::uint32_t settled_words(std::size_t shard, layout::Offset entry, std::uint64_t state) const;
    /// Called before the commit's first word is stored, so that a reader that meets such a word finds the record.
    void add(std::unique_ptr<CommitRecord> record);
    /// Called after the commit's last word is stored. Makes the commit the latest.
    void publish(Snapshot snapshot, CommitSource source);
    /// If no reader can need a record of this commit, runs store_words, publishes without a record and returns true.
    /// Otherwise does nothing and returns false. Creation of views waits meanwhile.
    template <class StoreWords>
    bool publish_unlogged(Snapshot snapshot, StoreWords store_words) {
        std::scoped_lock lock(mutex_);
        if (!leases_.empty() || !held_.empty()) return false;
        store_words();
        latest_.store(snapshot, std::memory_order_release);  // pairs with latest(): the words above are visible
        collect();
        return true;
    }
    /// The oldest snapshot that a live view reads, or the latest snapshot if there is no view.
    Snapshot oldest_reader() const;

    // -- thread-safe
    Visibility lease(std::span<const StreamBound> bounds);
    /// Leases a snapshot and excluded commits (ascending) that the caller chooses. StorageError if the snapshot is not
    /// yet published, or is no longer readable.
    Visibility lease_at(Snapshot snapshot, std::vector<Snapshot> excluded);
    /// Leases the commits that a reader within the period (`before`, `after`] would have seen (ADR 87). These are all
    /// commits up to and including `before`, and the commits of the period that the bounds of their streams include.
    /// The bounds in `named` also apply to earlier commits. StorageError if commits of the period are not retained.
    Visibility lease_past(Snapshot before, Snapshot after, std::span<const StreamBound> named,
                          std::span<const StreamBound> others);
    void unlease(const Visibility& visibility);
    /// Leases `snapshot` and all later snapshots for a reader in another process. Returns the leased snapshot:
    /// `snapshot`, or the latest snapshot if the latest snapshot is older. StorageError if the log of a later commit is
    /// already discarded.
    Snapshot lease_from(Snapshot snapshot);
    void unlease_from(Snapshot snapshot);
    void release(std::uint32_t stream, std::int64_t batch);
    /// Retains all commits after a snapshot for lease_past(), also in saved stores. nullopt: retains no commits any
    /// more. The snapshot must be the latest snapshot, or at least the snapshot of the previous call. StorageError if a
    /// later commit is already discarded.
    void keep(std::optional<Snapshot> snapshot);
    std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

    // -- save and open
    struct Hold {
        std::uint32_t stream = 0;
        std::int64_t released = kNever;
    };
    std::vector<Hold> holds() const;
    /// Visits, in order, the commits that a later incarnation possibly still has to distinguish. These are all commits
    /// from the first commit that a bound can exclude. Must not run concurrently with release().
    template <class Visit>
    void for_each_held(Visit visit) const {
        std::scoped_lock lock(mutex_);
        Snapshot first = held_.empty() ? end_ : *held_.begin();
        if (retained_) first = std::min(first, *retained_ + 1);
        for (Snapshot s = first; s < end_; ++s) visit(*find(s));
    }
    void restore(Snapshot latest, std::span<const Hold> holds, std::vector<std::unique_ptr<CommitRecord>> records);

private:
    // Records by snapshot modulo capacity. A reader may hold a pointer to a ring that has been replaced. Old rings
    // therefore live as long as the history, and their records of live snapshots stay valid. Together, the old rings
    // are smaller than the newest ring.
    struct Ring {
        explicit Ring(std::size_t capacity) : slots(capacity) {}
        // Capacity is a power of two. A slot is stored with release once its record is complete, and loaded with
        // acquire; the load therefore makes the record's content visible. A slot is cleared with a relaxed store, and
        // only below the floor, where no reader looks.
        std::vector<std::atomic<CommitRecord*>> slots;
    };
    struct StreamCommits {
        std::int64_t requested = kNever;                     // by release()
        std::int64_t released = kNever;                      // less than `requested` while keep() retains its commits
        std::deque<std::pair<std::int64_t, Snapshot>> held;  // (batch, snapshot), ascending; not yet released
    };
    bool excludable(const CommitSource& source) const;
    void reserve(Snapshot snapshot);
    void drop_released(StreamCommits& stream);
    void lease_retained(Snapshot snapshot);
    void collect();

    // Readers load these without the mutex; every store happens under it.
    // latest_: stored with release after the last word of a commit, loaded with acquire in latest(). A reader that
    // loads a snapshot number sees all words of that commit.
    std::atomic<Snapshot> latest_{0};
    // floor_: relaxed. It only rises and guards no other data: a writer that reads an older value only retains records
    // and tests positions unnecessarily. Records are removed under the mutex, below every lease.
    std::atomic<Snapshot> floor_{1};
    // ring_: stored with release after the slots are copied, loaded with acquire in find(). A reader that meets
    // snapshot s in a word has loaded that word with acquire. The writer stored the word after it added s's record to
    // the ring. The reader therefore loads that ring or a newer one.
    std::atomic<Ring*> ring_;
    // bytes_: relaxed, because it is a statistic that orders nothing.
    std::atomic<std::size_t> bytes_{0};

    mutable std::mutex mutex_;  // guards all members below; every store to the atomics above holds it
    std::vector<std::unique_ptr<Ring>> rings_;
    Snapshot end_ = 1;                                     // records exist for floor_ .. end_ - 1
    std::multiset<std::pair<Snapshot, Snapshot>> leases_;  // (first excluded, snapshot)
    std::multiset<Snapshot> readers_;                      // snapshots of leases
    std::unordered_map<std::uint32_t, StreamCommits> streams_;
    std::set<Snapshot> held_;
    std::optional<Snapshot> retained_;  // of keep(); it has a lease
};

}  // namespace penstock
