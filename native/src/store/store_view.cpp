#include "store/store_view.hpp"

#include <algorithm>
#include <optional>

#include "errors.hpp"
#include "store/edges_by_block.hpp"

namespace penstock {

using layout::Entry;
using layout::LabelRow;
using layout::Offset;

namespace {

/// Prefetches the extent's header and first values: all of most lists. The hardware prefetcher fetches longer ones.
void prefetch_extent(const Shard& shard, Offset extent, std::uint32_t length) {
    constexpr std::size_t kLine = 64, kLines = 8;
    const auto* const first = reinterpret_cast<const std::byte*>(&shard.region().word(extent));
    const std::size_t bytes = std::min<std::size_t>(layout::ListExtent::bytes(length), kLines * kLine);
    for (std::size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(first + at);
}

std::size_t runs_of(std::span<const TermId> values) {
    std::size_t runs = values.empty() ? 0 : 1;
    for (std::size_t i = 1; i < values.size(); ++i) runs += values[i] != values[i - 1];
    return runs;
}

Offset index_entry(Offset row, Dir dir) {
    return row + offsetof(LabelRow, vertices) + static_cast<std::size_t>(dir) * sizeof(Entry);
}

}  // namespace

// ---- finding lists

StoreView::List StoreView::load(const Shard& shard, Offset offset) const {
    if (offset == 0) return {nullptr, 0, 0, 0, 0, true};
    const auto& entry = shard.region().at<Entry>(offset);
    // State before head: see layout::Entry.
    const std::uint64_t state = layout::load_acquire(entry.state);
    const TermId head = layout::load_acquire(entry.head);
    List list{&shard, offset, head, state, layout::length_of(state), true};
    if (!layout::whole_before(state, visibility_.first_excluded)) [[unlikely]]
        load_changed(list);
    return list;
}

/// A list that is not whole. It may have been rewritten between the loads of its state and of its head.
void StoreView::load_changed(List& list) const {
    list.state = lookup::settled_state(list.shard->region(), list.state, list.head);
    list.length = layout::length_of(list.state);
    list.whole = false;
}

void StoreView::find_records(std::span<const TermId> keys, Dir dir, Offset* records) const {
    // One cache miss per stage and key, overlapped over the group: bucket, then record.
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const Shard& shard = shard_for(keys[i]);
        records[i] = shard.bucket_of(keys[i], dir);
        __builtin_prefetch(&shard.region().word(records[i]));
        __builtin_prefetch(&shard.region().word(records[i] + 64));
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const Shard& shard = shard_for(keys[i]);
        records[i] = keys[i] == kUnbound ? 0 : lookup::find_record(shard.region(), records[i], keys[i], dir);
        if (records[i] != 0) __builtin_prefetch(&shard.region().word(records[i]));
    }
}

void StoreView::find_lists(std::span<const TermId> keys, Label label, Dir dir, List* lists) const {
    Offset records[kGroup];
    find_records(keys, dir, records);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const Shard& shard = shard_for(keys[i]);
        const Offset entry = records[i] == 0 ? 0 : shard.find_entry(records[i], keys[i], label, dir);
        lists[i] = load(shard, entry);
        if (layout::is_extent(lists[i].head)) prefetch_extent(shard, layout::extent_of(lists[i].head), lists[i].length);
    }
}

StoreView::List StoreView::find_list(TermId vertex, Label label, Dir dir) const {
    const Shard& shard = shard_for(vertex);
    const Offset record = vertex == kUnbound ? 0 : shard.find_record(vertex, dir);
    return load(shard, record == 0 ? 0 : shard.find_entry(record, vertex, label, dir));
}

// ---- visibility

namespace {

/// The entries for one list in the append logs of this process.
class ListLogs {
public:
    ListLogs(const CommitHistory& history, PastLists* past, Snapshot first, std::uint32_t shard, Offset entry,
             ListVersion version)
        : history_(history), past_(past), first_(first), shard_(shard), entry_(entry), version_(version) {}
    layout::Append oldest_after(Snapshot commit, Snapshot snapshot) const {
        if (past_ == nullptr) return walk_to_oldest_after(*this, commit, snapshot);
        const auto point = past_->oldest_after(shard_, entry_, commit, snapshot, first_, *this);
        return version_.translate(point.commit, point.append);
    }
    layout::Append logged(Snapshot commit) const { return *log(commit).find(entry_); }
    layout::Append append(Snapshot commit) const { return version_.translate(commit, logged(commit)); }
    void reasserted(Snapshot commit, std::vector<std::uint32_t>& positions) const {
        for (const Reassertion& again : log(commit).reasserted(entry_))
            version_.translate(commit, again.position, positions);
    }

private:
    const AppendLog& log(Snapshot commit) const { return history_.find(commit)->logs[shard_]; }
    const CommitHistory& history_;
    PastLists* past_;
    Snapshot first_;  // excluded
    std::uint32_t shard_;
    Offset entry_;
    ListVersion version_;
};

}  // namespace

// Returns the length at this view's snapshot, including excluded positions.
std::uint32_t StoreView::ranges_of(const List& list, Ranges& ranges) const {
    const ListLogs logs(history_, past_, visibility_.first_excluded, list.shard->number(), list.entry,
                        ListVersion::of(list.shard->region(), list.head));
    const std::uint32_t length = visible_ranges(visibility_, logs, list.state, ranges);
    if (layout::has_removals(list.state)) apply_removals(list.shard->region(), list.head, length, ranges);
    return length;
}

std::uint64_t StoreView::visible_length(const List& list) const {
    if (list.whole) return list.length;
    Ranges ranges;
    ranges_of(list, ranges);
    std::uint64_t total = 0;
    for (const PositionRange& range : ranges) total += range.end - range.begin;
    return total;
}

bool StoreView::visible(const List& list) const { return list.whole ? list.length > 0 : visible_length(list) > 0; }

/// Calls visit(values, n) for each piece of the list that is visible to this view.
template <class Visit>
void StoreView::for_each_visible(const List& list, Visit visit) const {
    if (list.shard == nullptr) return;
    if (list.whole) {
        lookup::for_each_piece(list.shard->region(), list.head, 0, list.length, visit);
        return;
    }
    Ranges ranges;
    ranges_of(list, ranges);
    for (const PositionRange& range : ranges)
        lookup::for_each_piece(list.shard->region(), list.head, range.begin, range.end, visit);
}

// ---- a part of a store

bool StoreView::all_here(std::span<const TermId> vertices) const {
    return !part_ || std::all_of(vertices.begin(), vertices.end(), [this](TermId vertex) { return here(vertex); });
}

void StoreView::check_here(std::span<const TermId> vertices) const {
    if (!all_here(vertices)) throw DataError("a vertex was looked up whose shard is on another node");
}

void StoreView::check_whole() const {
    if (part_) throw DataError("a part of a store does not know all edges");
}

/// Searches from the end whose lists are local, regardless of their length.
void StoreView::contains_in_part(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                                 std::span<std::uint8_t> found) const {
    const bool out = all_here(subjects);
    if (!out) check_here(objects);
    const std::span<const TermId> from = out ? subjects : objects, to = out ? objects : subjects;
    List lists[kGroup];
    for (std::size_t at = 0; at < from.size(); at += kGroup) {
        const std::size_t n = std::min(kGroup, from.size() - at);
        find_lists(from.subspan(at, n), label, out ? Dir::Out : Dir::In, lists);
        for (std::size_t i = 0; i < n; ++i)
            if (found[at + i] == 0) found[at + i] = list_contains(lists[i], to[at + i]) ? 1 : 0;
    }
}

// ---- Source

void StoreView::expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const {
    check_here(keys);
    List lists[kGroup];
    for (std::size_t at = 0; at < keys.size(); at += kGroup) {
        const std::size_t n = std::min(kGroup, keys.size() - at);
        find_lists(keys.subspan(at, n), label, dir, lists);
        for (std::size_t i = 0; i < n; ++i) {
            const auto row = static_cast<std::uint32_t>(at + i);
            if (lists[i].length == 1 && lists[i].whole && !layout::is_extent(lists[i].head)) {
                out.rows.push_back(row);
                out.values.push_back(lists[i].head);
                continue;
            }
            for_each_visible(lists[i], [&](const TermId* values, std::size_t count) {
                out.rows.insert(out.rows.end(), count, row);
                out.values.insert(out.values.end(), values, values + count);
            });
        }
    }
}

bool StoreView::list_contains(const List& list, TermId value) const {
    if (list.length == 0) return false;
    const std::uint32_t position = lookup::find_value(list.shard->region(), list.head, list.length, value);
    // The head may be newer than the state; then the sorted run that was searched reaches beyond the length.
    if (position == lookup::kAbsent || position >= list.length) return false;
    if (list.whole) return true;
    Ranges ranges;
    ranges_of(list, ranges);
    return in_ranges(ranges, position);
}

/// The values of a list that is one sorted array; empty for other lists.
std::span<const TermId> StoreView::sorted_values(const List& list) const {
    if (!list.whole || !layout::is_extent(list.head)) return {};
    const auto& first = list.shard->region().at<layout::ListExtent>(layout::extent_of(list.head));
    return {first.values(), first.sorted < list.length ? 0 : list.length};
}

void StoreView::contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                         std::span<std::uint8_t> found) const {
    if (part_) return contains_in_part(subjects, label, objects, found);
    // Keys that an expansion repeated are adjacent, and every edge is in two lists: search from the more repetitive
    // end.
    if (2 * runs_of(objects) <= runs_of(subjects))
        contains_from(objects, label, Dir::In, subjects, found);
    else
        contains_from(subjects, label, Dir::Out, objects, found);
}

/// Finds one list for each run of equal keys.
void StoreView::contains_from(std::span<const TermId> from, Label label, Dir dir, std::span<const TermId> to,
                              std::span<std::uint8_t> found) const {
    TermId keys[kGroup];
    std::size_t ends[kGroup];  // one past the last row of each key
    List lists[kGroup];
    lookup::SortedSearches searches;
    for (std::size_t row = 0, next = 0; row < from.size();) {
        std::size_t n = 0;
        while (n < kGroup && next < from.size()) {
            keys[n] = from[next];
            while (next < from.size() && from[next] == keys[n]) ++next;
            ends[n++] = next;
        }
        find_lists({keys, n}, label, dir, lists);
        for (std::size_t i = 0; i < n; ++i) {
            if (lists[i].length == 0) {
                row = ends[i];
                continue;
            }
            const std::size_t rows = ends[i] - row;
            const bool quick = quickly_searched(lists[i]);
            if (const auto values = sorted_values(lists[i]); quick && !values.empty())
                for (std::size_t r = row; r < ends[i]; ++r)
                    searches.add(values.data(), values.size(), to[r], &found[r]);
            else if (dir == Dir::In && !quick)
                contains_from(to.subspan(row, rows), label, Dir::Out, from.subspan(row, rows),
                              found.subspan(row, rows));
            else if (!lists[i].whole)
                contains_in_old(lists[i], keys[i], label, dir, to.subspan(row, rows), found.subspan(row, rows));
            else
                for (std::size_t r = row; r < ends[i]; ++r)
                    if (found[r] == 0) found[r] = has_edge(lists[i], keys[i], label, dir, to[r]) ? 1 : 0;
            row = ends[i];
        }
    }
    searches.finish();
}

/// Searches a list that is not whole for several neighbours of its vertex: computes its visible positions once.
void StoreView::contains_in_old(const List& list, TermId vertex, Label label, Dir dir, std::span<const TermId> to,
                                std::span<std::uint8_t> found) const {
    const bool quick = quickly_searched(list);
    std::optional<Ranges> ranges;
    for (std::size_t row = 0; row < to.size(); ++row) {
        if (found[row] != 0 || to[row] == kUnbound || list.length == 0) continue;
        if (!quick) {
            const List other = find_list(to[row], label, dir == Dir::Out ? Dir::In : Dir::Out);
            if (other.length < list.length) {
                found[row] = list_contains(other, vertex) ? 1 : 0;
                continue;
            }
        }
        if (!ranges) ranges_of(list, ranges.emplace());
        const std::uint32_t position = lookup::find_value(list.shard->region(), list.head, list.length, to[row]);
        found[row] = position < list.length && in_ranges(*ranges, position) ? 1 : 0;
    }
}

bool StoreView::quickly_searched(const List& list) const {
    constexpr std::uint32_t kBisectedInCache = 4096;
    if (list.length <= lookup::kScanned) return true;
    if (list.length > kBisectedInCache) return false;
    const auto& first = list.shard->region().at<layout::ListExtent>(layout::extent_of(list.head));
    return list.length - std::min(first.sorted, list.length) <= lookup::kScanned;
}

/// Searches the shorter list if this one is long and the one of the other end is shorter.
bool StoreView::has_edge(const List& list, TermId vertex, Label label, Dir dir, TermId neighbour) const {
    if (list.length == 0 || neighbour == kUnbound) return false;
    if (quickly_searched(list)) return list_contains(list, neighbour);
    const List other = find_list(neighbour, label, dir == Dir::Out ? Dir::In : Dir::Out);
    return other.length < list.length ? list_contains(other, vertex) : list_contains(list, neighbour);
}

// A vertex whose label is new by an excluded commit may have more edges of that label by other commits.
void StoreView::append_hidden_vertices(const List& index, const Ranges& visible, Label label, Dir dir,
                                       std::vector<TermId>& out) const {
    std::uint32_t position = 0;
    for (const PositionRange& range : visible) {
        lookup::for_each_piece(index.shard->region(), index.head, position, range.begin,
                               [&](const TermId* vertices, std::size_t n) {
                                   for (std::size_t i = 0; i < n; ++i)
                                       if (this->visible(find_list(vertices[i], label, dir)))
                                           out.push_back(vertices[i]);
                               });
        position = range.end;
    }
}

// A view may exclude the commit that added an edge, but include one that removed all others.
void StoreView::append_checked_vertices(const List& index, Label label, Dir dir, std::vector<TermId>& out) const {
    lookup::for_each_piece(index.shard->region(), index.head, 0, index.length, [&](const TermId* words, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
            if (!layout::Removal::is(words[i]) && visible(find_list(words[i], label, dir))) out.push_back(words[i]);
    });
}

void StoreView::append_vertices(const Shard& shard, Label label, Dir dir, std::vector<TermId>& out) const {
    const Offset row = shard.label_row(label);
    if (row == 0) return;
    const List index = load(shard, index_entry(row, dir));
    if (layout::has_removals(index.state) && !visibility_.excluded.empty())
        return append_checked_vertices(index, label, dir, out);
    for_each_visible(index, [&](const TermId* values, std::size_t n) { out.insert(out.end(), values, values + n); });
    if (index.whole || visibility_.excluded.empty()) return;
    Ranges ranges;
    const std::uint32_t length = ranges_of(index, ranges);
    ranges.push_back({length, length});  // the positions after the last visible range
    append_hidden_vertices(index, ranges, label, dir, out);
}

void StoreView::vertices(Label label, Dir dir, std::vector<TermId>& out) const {
    check_whole();
    for (const Shard* shard : shards_) append_vertices(*shard, label, dir, out);
}

void StoreView::labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                          std::vector<Label>& labels) const {
    check_here(keys);
    Offset records[kGroup];
    for (std::size_t at = 0; at < keys.size(); at += kGroup) {
        const std::size_t n = std::min(kGroup, keys.size() - at);
        find_records(keys.subspan(at, n), dir, records);
        for (std::size_t i = 0; i < n; ++i) {
            const Shard& shard = shard_for(keys[at + i]);
            lookup::for_each_label(shard.region(), records[i], [&](Label label, Offset entry) {
                if (!visible(load(shard, entry))) return;
                rows.push_back(static_cast<std::uint32_t>(at + i));
                labels.push_back(label);
            });
        }
    }
}

void StoreView::edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const {
    edges_by_block(*this, label, subjects, objects);
}

void StoreView::labels(std::vector<Label>& out) const {
    Label end = 0;
    for (const Shard* shard : shards_) end = std::max(end, shard == nullptr ? 0 : shard->label_end());
    for (Label label = 1; label < end; ++label)
        if (visibility_.excluded.empty() ? has_edges(label) : may_have_edges(label)) out.push_back(label);
}

bool StoreView::has_edges(Label label) const {
    std::vector<TermId> subjects;
    return std::any_of(shards_.begin(), shards_.end(), [&](const Shard* shard) {
        const Offset row = shard == nullptr ? 0 : shard->label_row(label);
        if (row == 0) return false;
        const List index = load(*shard, index_entry(row, Dir::Out));
        if (visibility_.excluded.empty() || (index.whole && !layout::has_removals(index.state))) return visible(index);
        append_vertices(*shard, label, Dir::Out, subjects);
        return !subjects.empty();
    });
}

/// For views that exclude commits: an index list may hide a vertex that another commit makes visible.
bool StoreView::may_have_edges(Label label) const {
    const bool now = stats(label).edges > 0;
    return has_removals(label) ? has_edges(label) : now;  // tested later: none was removed before the count was read
}

/// Whether edges of the label have ever been removed.
bool StoreView::has_removals(Label label) const {
    return std::any_of(shards_.begin(), shards_.end(), [&](const Shard* shard) {
        const Offset row = shard == nullptr ? 0 : shard->label_row(label);
        return row != 0 && layout::has_removals(load(*shard, index_entry(row, Dir::Out)).state);
    });
}

LabelStats StoreView::stats(Label label) const {
    LabelStats stats;
    for (const Shard* shard : shards_) {
        if (shard == nullptr) continue;
        const Offset offset = shard->label_row(label);
        if (offset == 0) continue;
        const auto& row = shard->region().at<LabelRow>(offset);
        stats.edges += layout::load_acquire(row.edges);
        stats.subjects += shard->vertex_count(label, Dir::Out);
        stats.objects += shard->vertex_count(label, Dir::In);
    }
    return stats;
}

std::uint64_t StoreView::degree(TermId vertex, Label label, Dir dir) const {
    check_here(std::span(&vertex, 1));
    return visible_length(find_list(vertex, label, dir));
}

}  // namespace penstock
