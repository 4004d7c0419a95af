// How lists of the stored graph have grown, so that views of the past need not follow all later commits (ADR 87).
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "store/layout.hpp"
#include "store/visibility.hpp"

namespace penstock {

/// For each list that a view of the past has read: the commits after a first snapshot that have extended this list. The
/// lease of the view retains these commits. Thread-safe.
class PastLists {
public:
    /// Forgets all lists, unless the argument is the same as in the previous call. `from`: the snapshot after which
    /// commits are kept.
    void begin(Snapshot from) {
        std::scoped_lock lock(mutex_);
        if (from == from_) return;
        from_ = from;
        clear();
    }

    struct Point {
        Snapshot commit;
        layout::Append append;  // as in its log
    };
    /// The oldest commit after `snapshot` that has extended a list. `last`: the latest such commit that the caller
    /// knows; it is after `snapshot`. `first`: the first commit that the lease of the view retains, at most
    /// `snapshot` + 1. `logs.logged(commit)`: its append.
    template <class Logs>
    Point oldest_after(std::uint32_t shard, layout::Offset entry, Snapshot last, Snapshot snapshot, Snapshot first,
                       const Logs& logs) {
        std::scoped_lock lock(mutex_);
        if (count_ > kPoints) clear();
        List& list = lists_[{shard, entry}];
        std::vector<Point>& points = list.points;
        if (points.empty() || first < list.first || points.back().commit + 1 < first) {
            count_ -= points.size();
            points.clear();
            list.first = first;
        }
        const Snapshot known = points.empty() ? first - 1 : points.back().commit;
        const auto old = static_cast<std::ptrdiff_t>(points.size());
        for (Snapshot commit = last; commit > known;) {
            points.push_back({commit, logs.logged(commit)});
            commit = points.back().append.previous;
        }
        std::reverse(points.begin() + old, points.end());
        count_ += points.size() - static_cast<std::size_t>(old);
        return *std::upper_bound(points.begin(), points.end(), snapshot,
                                 [](Snapshot s, const Point& point) { return s < point.commit; });
    }

private:
    static constexpr std::size_t kPoints = std::size_t{1} << 22;
    struct List {
        Snapshot first = 0;  // the points are all commits from this one on
        std::vector<Point> points;
    };
    void clear() {
        lists_.clear();
        count_ = 0;
    }
    struct Key {
        std::uint32_t shard;
        layout::Offset entry;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const { return mix(key.entry ^ (std::uint64_t{key.shard} << 48)); }
    };

    std::mutex mutex_;  // guards all members
    Snapshot from_ = 0;
    std::size_t count_ = 0;  // points of all lists
    std::unordered_map<Key, List, Hash> lists_;
};

}  // namespace penstock
