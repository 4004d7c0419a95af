#include "remote/remote_view.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "errors.hpp"
#include "store/append_log.hpp"
#include "store/edges_by_block.hpp"
#include "store/lookup.hpp"
#include "store/sharding.hpp"

namespace penstock::remote {

using layout::Append;
using layout::CommitEntry;
using layout::CommitRing;
using layout::Entry;
using layout::Header;
using layout::LabelChunk;
using layout::LabelRow;
using layout::Offset;
using layout::Reassertion;

namespace {

constexpr std::uint64_t kProbed = 8;  // places of an append log that are read together
constexpr int kMaxRounds = 1 << 12;   // a chain of commits that touched one list takes two each

}  // namespace

/// What one call has copied, and the walk that it is on.
class RemoteView::Operation {
public:
    explicit Operation(const RemoteView& view) : copies(view.store_.reader_) {}
    Copies copies;
    Walk walk;
};

/// Does step(i) for each i, again and again until none of them misses anything; between rounds all that was missing is
/// read. step() stores what it found, so that the last time counts.
template <class Step>
void RemoteView::in_rounds(Operation& operation, std::size_t count, Step step) const {
    std::vector<std::uint32_t> left(count);
    std::iota(left.begin(), left.end(), 0);
    for (int round = 0; !left.empty(); ++round) {
        if (round == kMaxRounds) throw StorageError("a look-up on other nodes came to no end");
        if (round > 0) operation.copies.fetch();
        std::size_t missing = 0;
        for (const std::uint32_t i : left) {
            operation.walk = {};
            step(i);
            if (operation.walk.missing) left[missing++] = i;
        }
        left.resize(missing);
    }
}

// ---- finding lists

std::uint32_t RemoteView::shard_of(TermId vertex) const {
    return static_cast<std::uint32_t>(shard_number(vertex, images_.size()));
}

ShardMemory RemoteView::memory(Operation& operation, std::uint32_t shard) const {
    return {images_[shard], operation.copies, operation.walk};
}

Offset RemoteView::find_record(Operation& operation, TermId vertex, Dir dir) const {
    if (vertex == kUnbound) return 0;
    const std::uint32_t shard = shard_of(vertex);
    const Header& header = images_[shard].header;
    if (const Offset known = store_.locations_.find(header.epoch, vertex, dir); known != 0) return known;
    const ShardMemory memory = this->memory(operation, shard);
    const Offset bucket = lookup::current_bucket(memory, layout::record_hash(header.seed, vertex, dir));
    const Offset record = lookup::find_record(memory, bucket, vertex, dir);
    if (record != 0 && !memory.missing()) store_.locations_.remember(header.epoch, vertex, dir, record);
    return record;
}

RemoteView::List RemoteView::load(Operation& operation, std::uint32_t shard, Offset offset) const {
    if (offset == 0) return {};
    const auto& entry = memory(operation, shard).at<Entry>(offset);
    // In place: state before head, see layout::Entry. Copied: what commits up to the snapshot stored is whole; of a
    // later one only `last` counts, and the length before it comes from its log.
    const std::uint64_t state = layout::load_acquire(entry.state);
    const TermId head = layout::load_acquire(entry.head);
    return {shard, offset, head, state};
}

RemoteView::List RemoteView::find_list(Operation& operation, TermId vertex, Label label, Dir dir) const {
    const Offset record = find_record(operation, vertex, dir);
    if (record == 0) return {};
    const std::uint32_t shard = shard_of(vertex);
    const ShardMemory memory = this->memory(operation, shard);
    const List list = load(operation, shard, lookup::find_entry(memory, record, vertex, label, dir));
    if (images_[shard].base != nullptr) return list;
    // A hot list's record and first extent are read in one round. The two copies may differ in age; what the snapshot
    // covers is in both.
    const std::uint64_t epoch = images_[shard].header.epoch, key = record << 16 ^ label;
    if (operation.walk.missing) {
        if (const Offset known = store_.extents_.find(epoch, key, dir); known != 0) memory.prefetch(known);
    } else if (layout::is_extent(list.head)) {
        store_.extents_.remember(epoch, key, dir, payload_of(list.head));
    }
    return list;
}

Offset RemoteView::label_row(std::uint32_t shard, Label label) const {
    if (label > layout::kMaxLabel) return 0;
    const Offset chunk = images_[shard].header.label_chunks[LabelChunk::number(label)];
    return chunk == 0 ? 0 : LabelChunk::row_at(chunk, label);
}

RemoteView::List RemoteView::index_list(Operation& operation, std::uint32_t shard, Label label, Dir dir) const {
    const Offset row = label_row(shard, label);
    if (row == 0) return {};
    return load(operation, shard, row + offsetof(LabelRow, vertices) + static_cast<std::size_t>(dir) * sizeof(Entry));
}

// ---- visibility

/// One list's part of the append logs in its shard's region. What is missing reads as "no commit before".
class RemoteView::ListLogs {
public:
    ListLogs(const ShardMemory& memory, Offset entry) : memory_(memory), entry_(entry) {}

    Append append(Snapshot snapshot) const {
        const CommitEntry commit = this->commit(snapshot);
        if (commit.slots == 0) return {};
        for (std::uint64_t slot = AppendLog::first_slot(entry_, commit.slots);;
             slot = slot + 1 == commit.slots ? 0 : slot + 1) {
            const auto& found =
                memory_.first_of<Append>(commit.log + slot * sizeof(Append), std::min(kProbed, commit.slots - slot));
            if (memory_.missing() || found.entry == entry_) return found;
            if (found.entry == 0) throw StorageError("a commit's log lacks a list that it changed");
        }
    }
    void reasserted(Snapshot snapshot, std::vector<std::uint32_t>& positions) const {
        const CommitEntry commit = this->commit(snapshot);
        if (commit.reasserted == 0) return;
        const auto& all = memory_.first_of<Reassertion>(commit.log + commit.slots * sizeof(Append), commit.reasserted);
        if (memory_.missing()) return;
        for (const Reassertion& again : std::span(&all, commit.reasserted))
            if (again.entry == entry_) positions.push_back(again.position);
    }

private:
    CommitEntry commit(Snapshot snapshot) const {
        const std::uint64_t known = memory_.at<Header>(0).commits;
        if (known != 0) {
            const auto& entry = memory_.at<CommitEntry>(CommitRing::entry_at(known, snapshot));
            if (memory_.missing() || entry.snapshot == snapshot) return entry;
        }
        // The ring has grown since the view began.
        const std::uint64_t now = memory_.word_now(offsetof(Header, commits));
        if (memory_.missing() || now == 0) return {};
        const auto& entry = memory_.at<CommitEntry>(CommitRing::entry_at(now, snapshot));
        if (!memory_.missing() && entry.snapshot != snapshot)
            throw StorageError("commit " + std::to_string(snapshot) + " has no log any more");
        return entry;
    }
    const ShardMemory& memory_;
    Offset entry_;
};

std::uint32_t RemoteView::ranges_of(Operation& operation, const List& list, Ranges& ranges) const {
    const ShardMemory memory = this->memory(operation, list.shard);
    return visible_ranges(visibility_, ListLogs(memory, list.entry), list.state, ranges);
}

std::uint64_t RemoteView::visible_length(Operation& operation, const List& list) const {
    if (whole(list)) return list.length();
    Ranges ranges;
    ranges_of(operation, list, ranges);
    std::uint64_t total = 0;
    for (const PositionRange& range : ranges) total += range.end - range.begin;
    return total;
}

/// Calls visit(values, n) for each piece of what this view sees of the list.
template <class Visit>
void RemoteView::for_each_visible(Operation& operation, const List& list, Visit visit) const {
    if (list.entry == 0) return;
    const ShardMemory memory = this->memory(operation, list.shard);
    if (whole(list)) return lookup::for_each_piece(memory, list.head, 0, list.length(), visit);
    Ranges ranges;
    ranges_of(operation, list, ranges);
    if (memory.missing()) return;
    for (const PositionRange& range : ranges) lookup::for_each_piece(memory, list.head, range.begin, range.end, visit);
}

bool RemoteView::list_contains(Operation& operation, const List& list, TermId value) const {
    if (list.length() == 0) return false;
    const ShardMemory memory = this->memory(operation, list.shard);
    const std::uint32_t position = lookup::find_value(memory, list.head, list.length(), value);
    if (position >= list.length()) return false;  // absent, or of a commit that this state does not know
    if (whole(list)) return true;
    Ranges ranges;
    ranges_of(operation, list, ranges);
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const PositionRange& range) { return range.begin <= position && position < range.end; });
}

// ---- Source

void RemoteView::expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const {
    Operation operation(*this);
    // Found once for each key: a look-up that is done again may take another way (the location cache changes
    // meanwhile), and what lies there was not copied.
    std::vector<std::optional<List>> lists(keys.size());
    const auto ignore = [](const TermId*, std::size_t) {};
    in_rounds(operation, keys.size(), [&](std::uint32_t i) {
        if (!lists[i]) {
            const List list = find_list(operation, keys[i], label, dir);
            if (operation.walk.missing) return;
            lists[i] = list;
            operation.walk = {};  // from here as below: what lies beside the record by chance is not counted on
        }
        if (images_[lists[i]->shard].base == nullptr) for_each_visible(operation, *lists[i], ignore);
    });
    for (std::size_t i = 0; i < keys.size(); ++i) {
        operation.walk = {};
        for_each_visible(operation, *lists[i], [&](const TermId* values, std::size_t count) {
            out.rows.insert(out.rows.end(), count, static_cast<std::uint32_t>(i));
            out.values.insert(out.values.end(), values, values + count);
        });
        if (operation.walk.missing) throw StorageError("a list on another node changed its way while it was read");
    }
    store_.check_lease(snapshot_);
}

void RemoteView::contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                          std::span<std::uint8_t> found) const {
    Operation operation(*this);
    in_rounds(operation, subjects.size(), [&](std::uint32_t i) {
        if (found[i] != 0 || objects[i] == kUnbound) return;
        const List list = find_list(operation, subjects[i], label, Dir::Out);
        // Every edge lies in two lists: of a long and a short one, ask the short one.
        bool there;
        const List other = list.length() > lookup::kScanned ? find_list(operation, objects[i], label, Dir::In) : List{};
        if (operation.walk.missing) return;
        if (list.length() > lookup::kScanned && other.length() < list.length())
            there = list_contains(operation, other, subjects[i]);
        else
            there = list_contains(operation, list, objects[i]);
        if (!operation.walk.missing) found[i] = there ? 1 : 0;
    });
    store_.check_lease(snapshot_);
}

// A vertex that got the label by an excluded commit may have more edges of that label by others.
void RemoteView::hidden_vertices(std::uint32_t shard, Label label, Dir dir, std::vector<TermId>& out) const {
    Operation operation(*this);
    std::vector<TermId> hidden;
    in_rounds(operation, 1, [&](std::uint32_t) {
        hidden.clear();
        const List index = index_list(operation, shard, label, dir);
        if (index.entry == 0) return;
        Ranges ranges;
        const std::uint32_t length = ranges_of(operation, index, ranges);
        ranges.push_back({length, length});  // what lies behind the last visible range
        std::uint32_t position = 0;
        for (const PositionRange& range : ranges) {
            lookup::for_each_piece(
                memory(operation, shard), index.head, position, range.begin,
                [&](const TermId* values, std::size_t n) { hidden.insert(hidden.end(), values, values + n); });
            position = range.end;
        }
    });
    std::vector<std::uint8_t> seen(hidden.size());
    in_rounds(operation, hidden.size(), [&](std::uint32_t i) {
        seen[i] = visible_length(operation, find_list(operation, hidden[i], label, dir)) > 0;
    });
    for (std::size_t i = 0; i < hidden.size(); ++i)
        if (seen[i] != 0) out.push_back(hidden[i]);
}

void RemoteView::vertices(Label label, Dir dir, std::vector<TermId>& out) const {
    Operation operation(*this);
    std::vector<std::vector<TermId>> found(images_.size());
    std::vector<std::uint8_t> cut(images_.size());
    in_rounds(operation, images_.size(), [&](std::uint32_t shard) {
        found[shard].clear();
        const List index = index_list(operation, shard, label, dir);
        cut[shard] = index.entry != 0 && !whole(index);
        for_each_visible(operation, index, [&](const TermId* values, std::size_t n) {
            found[shard].insert(found[shard].end(), values, values + n);
        });
    });
    for (std::uint32_t shard = 0; shard < images_.size(); ++shard) {
        out.insert(out.end(), found[shard].begin(), found[shard].end());
        if (cut[shard] != 0 && !visibility_.excluded.empty()) hidden_vertices(shard, label, dir, out);
    }
    store_.check_lease(snapshot_);
}

void RemoteView::labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                           std::vector<Label>& labels) const {
    Operation operation(*this);
    std::vector<std::vector<Label>> found(keys.size());
    in_rounds(operation, keys.size(), [&](std::uint32_t i) {
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

// A superset is allowed: every label with an edge at the latest snapshot.
void RemoteView::labels(std::vector<Label>& out) const {
    Operation operation(*this);
    std::vector<std::uint8_t> some;
    for (std::uint32_t shard = 0; shard < images_.size(); ++shard)
        for (std::size_t number = 0; number < LabelChunk::kChunks; ++number)
            if (images_[shard].header.label_chunks[number] != 0)
                some.resize(std::max<std::size_t>(some.size(), LabelChunk::first(number) + LabelChunk::rows(number)));
    in_rounds(operation, images_.size() * LabelChunk::kChunks, [&](std::uint32_t i) {
        const std::uint32_t shard = i / LabelChunk::kChunks, number = i % LabelChunk::kChunks;
        const Offset chunk = images_[shard].header.label_chunks[number];
        if (chunk == 0) return;
        const auto& rows = memory(operation, shard).at<LabelRow>(chunk, LabelChunk::rows(number) * sizeof(LabelRow));
        if (operation.walk.missing) return;
        for (std::uint64_t k = 0; k < LabelChunk::rows(number); ++k)
            if (layout::load_acquire((&rows)[k].edges) > 0) some[LabelChunk::first(number) + k] = 1;
    });
    for (std::size_t label = 1; label < some.size(); ++label)
        if (some[label] != 0) out.push_back(static_cast<Label>(label));
    store_.check_lease(snapshot_);
}

LabelStats RemoteView::stats(Label label) const {
    Operation operation(*this);
    std::vector<LabelStats> parts(images_.size());
    in_rounds(operation, images_.size(), [&](std::uint32_t shard) {
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
    store_.check_lease(snapshot_);
    return stats;
}

std::uint64_t RemoteView::degree(TermId vertex, Label label, Dir dir) const {
    Operation operation(*this);
    std::uint64_t length = 0;
    in_rounds(operation, 1,
              [&](std::uint32_t) { length = visible_length(operation, find_list(operation, vertex, label, dir)); });
    store_.check_lease(snapshot_);
    return length;
}

}  // namespace penstock::remote
