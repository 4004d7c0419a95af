#include "remote/remote_view.hpp"

#include <algorithm>

#include "remote/list_pieces.hpp"
#include "remote/operation.hpp"
#include "store/edges_by_block.hpp"
#include "store/lookup.hpp"

namespace penstock::remote {

using layout::LabelChunk;
using layout::LabelRow;
using layout::Offset;

void RemoteView::expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const {
    Operation operation(store_.reader_);
    const std::vector<Sought> sought = this->sought(keys);
    const std::vector<List> lists = find_lists(operation, sought, label, dir);
    read_values(operation, lists);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        operation.walk = {};
        for_each_visible(operation, lists[i], [&](const TermId* values, std::size_t count) {
            out.rows.insert(out.rows.end(), count, static_cast<std::uint32_t>(i));
            out.values.insert(out.values.end(), values, values + count);
        });
        if (operation.walk.missing) throw StorageError("a list on another node changed its way while it was read");
    }
    cache_lists(operation, sought, lists, label, dir);
    store_.check_lease(snapshot_);
}

namespace {

/// Numbers runs of equal values: of[i] is the number of the run of values[i]. Returns the first value of each run.
std::vector<TermId> runs_of(std::span<const TermId> values, std::vector<std::uint32_t>& of) {
    std::vector<TermId> firsts;
    of.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i == 0 || values[i] != values[i - 1]) firsts.push_back(values[i]);
        of[i] = static_cast<std::uint32_t>(firsts.size() - 1);
    }
    return firsts;
}

}  // namespace

void RemoteView::contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                          std::span<std::uint8_t> found) const {
    Operation operation(store_.reader_);
    std::vector<std::uint32_t> run;
    const std::vector<Sought> sought = this->sought(runs_of(subjects, run));
    const std::vector<List> lists = find_lists(operation, sought, label, Dir::Out);
    // Every edge is in two lists: search the shorter one.
    std::vector<TermId> ends;
    std::vector<std::uint32_t> end_of(subjects.size());
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        if (found[i] != 0 || lists[run[i]].length() <= lookup::kScanned) continue;
        end_of[i] = static_cast<std::uint32_t>(ends.size());
        ends.push_back(objects[i]);
    }
    const std::vector<Sought> others_sought = this->sought(ends);
    const std::vector<List> others = find_lists(operation, others_sought, label, Dir::In);
    std::vector<std::optional<Ranges>> seen(lists.size()), others_seen(others.size());
    operation.in_rounds(subjects.size(), [&](std::uint32_t i) {
        if (found[i] != 0 || objects[i] == kUnbound) return;
        const List& list = lists[run[i]];
        const bool other = list.length() > lookup::kScanned && others[end_of[i]].length() < list.length();
        const bool there = other ? list_contains(operation, others[end_of[i]], others_seen[end_of[i]], subjects[i])
                                 : list_contains(operation, list, seen[run[i]], objects[i]);
        if (!operation.walk.missing) found[i] = there ? 1 : 0;
    });
    cache_lists(operation, sought, lists, label, Dir::Out);
    cache_lists(operation, others_sought, others, label, Dir::In);
    store_.check_lease(snapshot_);
}

// A vertex whose label is new by an excluded commit may have more edges of that label by other commits.
void RemoteView::hidden_vertices(Operation& operation, const List& index, Label label, Dir dir,
                                 std::vector<TermId>& out) const {
    std::vector<TermId> hidden;
    operation.in_rounds(1, [&](std::uint32_t) {
        hidden.clear();
        Ranges ranges;
        const std::uint32_t length = ranges_of(operation, index, ranges);
        if (checked(index)) ranges.clear();
        ranges.push_back({length, length});  // the positions after the last visible range
        const ShardMemory memory = this->memory(operation, index.shard);
        std::uint32_t position = 0;
        for (const PositionRange& range : ranges) {
            for_each_position(memory, index, position, range.begin, [&](const TermId* values, std::size_t n) {
                std::remove_copy_if(values, values + n, std::back_inserter(hidden), layout::Removal::is);
            });
            position = range.end;
        }
    });
    const std::vector<List> lists = find_lists(operation, sought(hidden), label, dir);
    std::vector<std::uint8_t> seen(hidden.size());
    operation.in_rounds(hidden.size(), [&](std::uint32_t i) { seen[i] = visible_length(operation, lists[i]) > 0; });
    for (std::size_t i = 0; i < hidden.size(); ++i)
        if (seen[i] != 0) out.push_back(hidden[i]);
}

void RemoteView::vertices(Label label, Dir dir, std::vector<TermId>& out) const {
    Operation operation(store_.reader_);
    const std::vector<Sought> sought = index_lists(label, dir);
    const std::vector<List> lists = find_lists(operation, sought, label, dir);
    read_values(operation, lists);
    for (const List& index : lists) {
        if (checked(index)) continue;
        operation.walk = {};
        for_each_visible(operation, index,
                         [&](const TermId* values, std::size_t n) { out.insert(out.end(), values, values + n); });
        if (operation.walk.missing) throw StorageError("a list on another node changed its way while it was read");
    }
    for (const List& index : lists)
        if (index.entry != 0 && !whole(index) && !visibility_.excluded.empty())
            hidden_vertices(operation, index, label, dir, out);
    cache_lists(operation, sought, lists, label, dir);
    store_.check_lease(snapshot_);
}

void RemoteView::labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                           std::vector<Label>& labels) const {
    Operation operation(store_.reader_);
    std::vector<std::vector<Label>> found(keys.size());
    operation.in_rounds(keys.size(), [&](std::uint32_t i) {
        found[i].clear();
        const std::uint32_t shard = shard_of(keys[i]);
        const Offset record = find_record(operation, keys[i], dir);
        lookup::for_each_label(memory(operation, shard), record, [&](Label label, Offset entry) {
            if (visible_length(operation, load(operation, shard, entry)) > 0) found[i].push_back(label);
        });
    });
    for (std::size_t i = 0; i < keys.size(); ++i) {
        rows.insert(rows.end(), found[i].size(), static_cast<std::uint32_t>(i));
        labels.insert(labels.end(), found[i].begin(), found[i].end());
    }
    store_.check_lease(snapshot_);
}

void RemoteView::edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const {
    edges_by_block(*this, label, subjects, objects);
}

// A superset is permitted: every label with an edge at the latest snapshot, or from which edges were removed.
void RemoteView::labels(std::vector<Label>& out) const {
    Operation operation(store_.reader_);
    std::vector<std::uint8_t> some;
    for (std::uint32_t shard = 0; shard < images_.size(); ++shard)
        for (std::size_t number = 0; number < LabelChunk::kChunks; ++number)
            if (images_[shard].header.label_chunks[number] != 0)
                some.resize(std::max<std::size_t>(some.size(), LabelChunk::first(number) + LabelChunk::rows(number)));
    operation.in_rounds(images_.size() * LabelChunk::kChunks, [&](std::uint32_t i) {
        const std::uint32_t shard = i / LabelChunk::kChunks, number = i % LabelChunk::kChunks;
        const Offset chunk = images_[shard].header.label_chunks[number];
        if (chunk == 0) return;
        const auto& rows = memory(operation, shard).at<LabelRow>(chunk, LabelChunk::rows(number) * sizeof(LabelRow));
        if (operation.walk.missing) return;
        for (std::uint64_t k = 0; k < LabelChunk::rows(number); ++k)
            if (layout::load_acquire((&rows)[k].edges) > 0 ||
                layout::has_removals(layout::load_acquire((&rows)[k].vertices[0].state)))
                some[LabelChunk::first(number) + k] = 1;
    });
    for (std::size_t label = 1; label < some.size(); ++label)
        if (some[label] != 0) out.push_back(static_cast<Label>(label));
    store_.check_lease(snapshot_);
}

LabelStats RemoteView::stats(Label label) const {
    Operation operation(store_.reader_);
    std::vector<LabelStats> parts(images_.size());
    operation.in_rounds(images_.size(), [&](std::uint32_t shard) {
        const Offset offset = label_row(shard, label);
        if (offset == 0) return;
        const auto& row = memory(operation, shard).at<LabelRow>(offset);
        parts[shard] = {layout::load_acquire(row.edges), layout::length_of(layout::load_acquire(row.vertices[0].state)),
                        layout::length_of(layout::load_acquire(row.vertices[1].state))};
    });
    LabelStats stats;
    for (const LabelStats& part : parts) {
        stats.edges += part.edges;
        stats.subjects += part.subjects;
        stats.objects += part.objects;
    }
    // After removals an estimate: the index lists contain removal words, too, and the vertices that were removed.
    stats.subjects = std::min(stats.subjects, stats.edges);
    stats.objects = std::min(stats.objects, stats.edges);
    store_.check_lease(snapshot_);
    store_.count_edges(label, stats.edges);
    return stats;
}

std::uint64_t RemoteView::edge_count(Label label) const {
    const std::optional<std::uint64_t> known = store_.edges_lately(label);
    return known ? *known : stats(label).edges;
}

std::uint64_t RemoteView::degree(TermId vertex, Label label, Dir dir) const {
    Operation operation(store_.reader_);
    const List list = find_lists(operation, sought({&vertex, 1}), label, dir).front();
    std::uint64_t length = 0;
    operation.in_rounds(1, [&](std::uint32_t) { length = visible_length(operation, list); });
    store_.check_lease(snapshot_);
    return length;
}

}  // namespace penstock::remote
