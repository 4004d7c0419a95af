// How lists of the stored graph have grown, so that views of the past need not follow all later commits (ADR 87).
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "store/layout.hpp"
#include "store/visibility.hpp"

namespace penstock {

/// For each list that such a view has read: the commits after a first snapshot that have extended it. The commits must
/// be retained by CommitHistory::keep(). Thread-safe.
class PastLists {
public:
    /// Starts again, for the commits after `from`, which are retained from now on.
    void begin(Snapshot from) {
        std::scoped_lock lock(mutex_);
        if (from == from_) return;
        from_ = from;
        lists_.clear();
    }

    struct Point {
        Snapshot commit;
        layout::Append append;  // as in its log
    };
    /// The oldest commit after `snapshot` that has extended a list. `last`: the latest such commit that the caller
    /// knows; it is after `snapshot`. Nothing if the commits are not retained. `logs.logged(commit)`: its append.
    template <class Logs>
    std::optional<Point> oldest_after(std::uint32_t shard, layout::Offset entry, Snapshot last, Snapshot snapshot,
                                      const Logs& logs) {
        std::scoped_lock lock(mutex_);
        if (snapshot < from_) return {};
        std::vector<Point>& points = lists_[{shard, entry}];
        const Snapshot known = points.empty() ? from_ : points.back().commit;
        const auto old = static_cast<std::ptrdiff_t>(points.size());
        for (Snapshot commit = last; commit > known;) {
            points.push_back({commit, logs.logged(commit)});
            commit = points.back().append.previous;
        }
        std::reverse(points.begin() + old, points.end());
        return *std::upper_bound(points.begin(), points.end(), snapshot,
                                 [](Snapshot s, const Point& point) { return s < point.commit; });
    }

private:
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
    std::unordered_map<Key, std::vector<Point>, Hash> lists_;
};

}  // namespace penstock
