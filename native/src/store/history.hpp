// The commits that some reader may still have to tell apart: their append logs, who reads at which snapshot (leases),
// and which streams may still be bounded below their newest batch (holds).
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
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

/// All commits from the floor on have records, all older ones are seen by everybody: so a chain of Append::previous
/// never breaks above the floor. The floor is the first commit that a live view excludes, or that a stream's bound may
/// exclude.
class CommitHistory {
public:
    CommitHistory();
    ~CommitHistory();

    /// The record of a commit at or above the reader's first excluded one. Any thread, no lock.
    const CommitRecord* find(Snapshot snapshot) const;

    Snapshot latest() const { return latest_.load(std::memory_order_acquire); }

    // -- the writer
    Snapshot floor() const { return floor_.load(std::memory_order_relaxed); }
    /// Whether a bound that may still be asked for could exclude a commit of this source.
    bool can_be_excluded(const CommitSource& source) const;
    /// Whether such a bound, while it lets `reader` through, could exclude the commit that stored this position of a
    /// list.
    bool may_hide(std::size_t shard, layout::Offset entry, Snapshot last, std::uint32_t position,
                  const CommitSource& reader) const;
    /// Before the first word of the commit is stored, so that whoever meets such a word finds the record.
    void add(std::unique_ptr<CommitRecord> record);
    /// After the last word of the commit is stored: makes it the latest.
    void publish(Snapshot snapshot, CommitSource source);
    /// Runs store_words and publishes without any record, if nobody could need one; views wait meanwhile. Says if it
    /// did.
    template <class StoreWords>
    bool publish_unlogged(Snapshot snapshot, StoreWords store_words) {
        std::scoped_lock lock(mutex_);
        if (!leases_.empty() || !held_.empty()) return false;
        store_words();
        latest_.store(snapshot, std::memory_order_release);  // pairs with latest(): the words above are visible
        collect();
        return true;
    }
    /// Oldest snapshot that a live view reads, or the latest.
    Snapshot oldest_reader() const;

    // -- any thread
    Visibility lease(std::span<const StreamBound> bounds);
    /// The same for a view whose snapshot and excluded commits (ascending) were chosen elsewhere. StorageError where
    /// the snapshot is not here yet, or cannot be read any more.
    Visibility lease_at(Snapshot snapshot, std::vector<Snapshot> excluded);
    void unlease(const Visibility& visibility);
    /// For a reader elsewhere that may come to read `snapshot` or any later one. Returns the snapshot leased: that one,
    /// or the latest where that is older. StorageError where a later commit has no log any more.
    Snapshot lease_from(Snapshot snapshot);
    void unlease_from(Snapshot snapshot);
    void release(std::uint32_t stream, std::int64_t batch);
    std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

    // -- save and open
    struct Hold {
        std::uint32_t stream = 0;
        std::int64_t released = kNever;
    };
    std::vector<Hold> holds() const;
    /// The commits that a later incarnation may still have to tell apart: from the first that a bound may exclude, in
    /// order. Not while another thread releases.
    template <class Visit>
    void for_each_held(Visit visit) const {
        std::scoped_lock lock(mutex_);
        if (held_.empty()) return;
        for (Snapshot s = *held_.begin(); s < end_; ++s) visit(*find(s));
    }
    void restore(Snapshot latest, std::span<const Hold> holds, std::vector<std::unique_ptr<CommitRecord>> records);

private:
    // Records by snapshot modulo capacity. A reader may hold the pointer to a ring that has been outgrown: old rings
    // stay until the end (together smaller than the newest), and what they hold for live snapshots stays right.
    struct Ring {
        explicit Ring(std::size_t capacity) : slots(capacity) {}
        // Capacity is a power of two. A slot is stored with release once its record is complete, and loaded with
        // acquire: the record's content is visible. It is cleared, relaxed, only below the floor, where no reader
        // looks.
        std::vector<std::atomic<CommitRecord*>> slots;
    };
    struct StreamCommits {
        std::int64_t released = kNever;
        std::deque<std::pair<std::int64_t, Snapshot>> held;  // (batch, snapshot), ascending: not yet released
    };
    bool excludable(const CommitSource& source) const;
    void reserve(Snapshot snapshot);
    void collect();

    // Readers load these without the mutex; every store happens under it.
    // latest_: release after the last word of a commit is stored, acquire in latest(). A reader that sees the number
    // sees the words.
    std::atomic<Snapshot> latest_{0};
    // floor_: relaxed. It only rises, and it guards nothing: a writer that reads an older value keeps records and tests
    // positions that it need not. The records themselves are removed under the mutex, below every lease.
    std::atomic<Snapshot> floor_{1};
    // ring_: release once the slots are copied, acquire in find(). A reader that meets snapshot s in a word has loaded
    // the word with acquire, and the word was stored after s's record entered the ring: it finds that ring or a newer
    // one.
    std::atomic<Ring*> ring_;
    // bytes_: relaxed. A figure for statistics; it orders nothing.
    std::atomic<std::size_t> bytes_{0};

    mutable std::mutex mutex_;  // all below; also taken by every change of the above
    std::vector<std::unique_ptr<Ring>> rings_;
    Snapshot end_ = 1;                                     // records exist for floor_ .. end_ - 1
    std::multiset<std::pair<Snapshot, Snapshot>> leases_;  // (first excluded, snapshot)
    std::multiset<Snapshot> readers_;                      // snapshots of leases
    std::unordered_map<std::uint32_t, StreamCommits> streams_;
    std::set<Snapshot> held_;
};

}  // namespace penstock
