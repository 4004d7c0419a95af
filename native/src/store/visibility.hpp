// Computes which positions of a list a reader of an older snapshot sees, from the append logs of the commits that
// changed the list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "store/commit.hpp"
#include "store/layout.hpp"
#include "store/lookup.hpp"

namespace penstock {

/// The commits that a view sees: all up to `snapshot` except `excluded` (ascending). Commits below `first_excluded`
/// require no look at a log.
struct Visibility {
    Snapshot snapshot = 0;
    Snapshot first_excluded = 1;
    std::vector<Snapshot> excluded;

    bool excludes(Snapshot commit) const {
        return commit > snapshot || std::binary_search(excluded.begin(), excluded.end(), commit);
    }
};

/// The positions of a list that a reader has found, with the head that it has loaded.
struct ListVersion {
    Snapshot commit = 0;      // the commit that has rewritten the list; 0: none
    std::uint32_t shift = 0;  // the number by which positions of earlier commits are larger

    template <class Memory>
    static ListVersion of(const Memory& memory, TermId head) {
        if (!layout::is_rewritten(head)) return {};
        const layout::Rewritten& made = lookup::rewritten(memory, head);
        return {made.commit, made.commit == 0 ? 0 : made.shift()};
    }
    /// The append of a commit, with positions of this version. A reader can find a commit that has rewritten the list
    /// after the loaded version. This happens only in copies of words, and only if the reader's snapshot is before that
    /// commit.
    layout::Append translate(Snapshot at, layout::Append append) const {
        if (at < commit) append.before -= shift;
        if (at > commit) append.before += append.shift;
        return append;
    }
    /// Appends a position from the log of a commit, unless every reader sees the value at this position.
    void translate(Snapshot at, std::uint32_t position, std::vector<std::uint32_t>& positions) const {
        if (at >= commit)
            positions.push_back(position);
        else if (position >= shift)
            positions.push_back(position - shift);
    }
};

/// Positions [begin, end) of a list.
struct PositionRange {
    std::uint32_t begin;
    std::uint32_t end;
};

/// Whether ascending, disjoint ranges contain a position.
inline bool in_ranges(const std::vector<PositionRange>& ranges, std::uint32_t position) {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), position,
                                        [](std::uint32_t p, const PositionRange& range) { return p < range.begin; });
    return after != ranges.begin() && position < std::prev(after)->end;
}

/// Applies the removal words of a list to its visible positions. The remaining ranges are the positions of visible
/// values. `length` is the list's length at the view's snapshot.
template <class Memory>
void apply_removals(const Memory& memory, TermId head, std::uint32_t length, std::vector<PositionRange>& ranges) {
    struct Change {
        std::uint32_t position;
        bool shown;
    };
    std::vector<Change> changes;
    lookup::for_each_removal(memory, head, 0, length, [&](TermId word, std::uint32_t position) {
        if (in_ranges(ranges, position))
            changes.push_back({layout::Removal::position(word), layout::Removal::restores(word)});
        changes.push_back({position, false});  // a removal word is not a value
    });
    // Stable: of the changes of one position, the last one decides.
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.position < b.position; });
    std::vector<PositionRange> shown;
    const auto show = [&](std::uint32_t begin, std::uint32_t end) {
        if (begin >= end) return;
        if (!shown.empty() && shown.back().end == begin)
            shown.back().end = end;
        else
            shown.push_back({begin, end});
    };
    auto range = ranges.begin();
    // Shows what is visible in [begin, end).
    const auto show_unchanged = [&](std::uint32_t begin, std::uint32_t end) {
        while (range != ranges.end() && range->end <= begin) ++range;
        for (auto at = range; at != ranges.end() && at->begin < end; ++at)
            show(std::max(at->begin, begin), std::min(at->end, end));
    };
    std::uint32_t position = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        if (i + 1 < changes.size() && changes[i + 1].position == changes[i].position) continue;
        show_unchanged(position, changes[i].position);
        position = changes[i].position + 1;
        if (changes[i].shown) show(changes[i].position, position);
    }
    show_unchanged(position, length);
    ranges = std::move(shown);
}

/// The append of the oldest commit after `snapshot` that has extended a list. `commit`: the latest such commit.
template <class Logs>
layout::Append walk_to_oldest_after(const Logs& logs, Snapshot commit, Snapshot snapshot) {
    layout::Append append;
    for (; commit > snapshot; commit = append.previous) append = logs.append(commit);
    return append;
}

/// Fills `ranges` with the visible positions of the list with the given state: ascending, disjoint. Returns the list's
/// length at the view's snapshot, including excluded positions. For one list, `Logs` has `append(commit)`, the commit's
/// Append to it, and `reasserted(commit, positions)`, which appends the positions that the commit asserted again. It
/// may have `oldest_after(commit, snapshot)`, a faster walk_to_oldest_after(). Removal words are not applied.
template <class Logs>
std::uint32_t visible_ranges(const Visibility& visibility, const Logs& logs, std::uint64_t state,
                             std::vector<PositionRange>& ranges) {
    ranges.clear();
    std::uint32_t length = layout::length_of(state);
    Snapshot commit = layout::last_of(state);
    // There are commits after this view's snapshot. The visible length of the list is its length before the oldest of
    // these commits.
    if (commit > visibility.snapshot) {
        layout::Append append;
        if constexpr (requires { logs.oldest_after(commit, visibility.snapshot); })
            append = logs.oldest_after(commit, visibility.snapshot);
        else
            append = walk_to_oldest_after(logs, commit, visibility.snapshot);
        length = append.before;
        commit = append.previous;
    }
    if (commit < visibility.first_excluded) {
        if (length > 0) ranges.push_back({0, length});
        return length;
    }
    std::vector<PositionRange> hidden;  // newest first
    std::vector<std::uint32_t> shown;
    while (commit >= visibility.first_excluded) {
        const layout::Append append = logs.append(commit);
        if (visibility.excludes(commit)) {
            if (append.count > 0) hidden.push_back({append.before, append.before + append.count});
        } else {
            logs.reasserted(commit, shown);
        }
        commit = append.previous;
    }
    std::sort(shown.begin(), shown.end());
    shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
    std::uint32_t position = 0;
    auto again = shown.begin();
    for (auto hole = hidden.rbegin(); hole != hidden.rend(); ++hole) {
        if (hole->begin > position) ranges.push_back({position, hole->begin});
        while (again != shown.end() && *again < hole->begin) ++again;
        for (; again != shown.end() && *again < hole->end; ++again) ranges.push_back({*again, *again + 1});
        position = hole->end;
    }
    if (position < length) ranges.push_back({position, length});
    return length;
}

}  // namespace penstock
