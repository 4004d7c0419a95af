#include "store/shard.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "errors.hpp"

namespace penstock {

using layout::Directory;
using layout::Entry;
using layout::LabelChunk;
using layout::LabelRow;
using layout::Offset;
using layout::Ref;
using layout::VtsArray;

namespace {
constexpr std::uint32_t kMaxStreams = 1u << 20;
constexpr std::uint64_t kFirstVts = 16;
}  // namespace

Shard::Shard(Region region, const CommitHistory& history, std::uint32_t number)
    : region_(std::move(region)),
      history_(history),
      number_(number),
      lists_(region_, publication_),
      changed_(region_),
      table_(region_),
      logs_(region_) {
    // The saved list of unused spans includes the rings and logs of the previous incarnation.
    region_.header().commits = 0;
    region_.header().oldest_readable = header().published + 1;
    count_removals();
}

void Shard::restore_log(Snapshot snapshot, const CommitSource& source, const AppendLog& log) {
    logs_.add(snapshot, source, log);
    logs_.keep();
    region_.keep();
    if (snapshot < header().oldest_readable) region_.header().oldest_readable = snapshot;
}

Offset Shard::label_row(Label label) const {
    if (label > layout::kMaxLabel) return 0;
    // Acquire: makes the zeroed rows of the chunk visible.
    const Offset chunk = layout::load_acquire(header().label_chunks[LabelChunk::number(label)]);
    return chunk == 0 ? 0 : LabelChunk::row_at(chunk, label);
}

Label Shard::label_end() const {
    std::size_t chunk = LabelChunk::kChunks;
    while (chunk > 0 && layout::load_acquire(header().label_chunks[chunk - 1]) == 0) --chunk;
    return chunk == 0 ? 0 : static_cast<Label>(LabelChunk::first(chunk - 1) + LabelChunk::rows(chunk - 1));
}

Offset Shard::make_label_row(Label label) {
    if (label == 0 || label > layout::kMaxLabel) throw LimitError("edge label out of range");
    auto& chunk = region_.header().label_chunks[LabelChunk::number(label)];
    if (chunk == 0)
        layout::store_release(chunk,
                              region_.allocate_block(LabelChunk::rows(LabelChunk::number(label)) * sizeof(LabelRow)));
    return LabelChunk::row_at(chunk, label);
}

void Shard::begin(Snapshot snapshot, CommitSource source, bool rewrites) {
    snapshot_ = snapshot;
    source_ = source;
    rewrites_ = rewrites;
    floor_ = history_.floor();
    shorten();  // before its entries may be reused
    table_.collect(history_.oldest_reader());
    logs_.release_before(floor_);
    if (rewrites_) choose_lists();
}

void Shard::append(Dir dir, std::span<const Keyed> ends, std::vector<Keyed>* fresh, std::vector<Keyed>* repeated) {
    const bool empty = header().published == 0;
    Run runs[kGroup];
    for (std::size_t at = 0; at < ends.size();) {
        std::size_t n = 0;
        for (; n < kGroup && at < ends.size(); ++n) {
            std::size_t end = at + 1;
            while (end < ends.size() && ends[end].vertex == ends[at].vertex) ++end;
            const std::uint64_t hash = layout::record_hash(header().seed, ends[at].vertex, dir);
            runs[n] = {ends.subspan(at, end - at), hash, lookup::current_bucket(region_, hash)};
            if (!empty) prefetch_bucket(runs[n]);
            at = end;
        }
        if (!empty) find_lists({runs, n}, dir);
        for (std::size_t i = 0; i < n; ++i) append_vertex(dir, runs[i], fresh, repeated);
    }
}

void Shard::prefetch_bucket(const Run& run) const {
    __builtin_prefetch(&region_.word(run.bucket));
    __builtin_prefetch(&region_.word(run.bucket + 64));
}

// Each step is done for all vertices of a group before the next, so that the cache misses of a step overlap.
void Shard::find_lists(std::span<Run> runs, Dir dir) {
    for (Run& run : runs) {
        run.record = lookup::find_record(region_, run.bucket, run.ends[0].vertex, dir);
        if (run.record != 0) __builtin_prefetch(&region_.word(run.record));
    }
    for (Run& run : runs) {
        if (run.record == 0) continue;
        run.entry = find_entry(run.record, run.ends[0].vertex, run.ends[0].label, dir);
        if (run.entry != 0) lists_.prefetch(run.entry);
    }
    for (const Run& run : runs)
        if (run.entry != 0) lists_.prefetch_tail(run.entry);
}

// Appends to values_ what is not stored yet.
std::size_t Shard::keep_new(Offset entry, std::span<const Keyed> ends, std::vector<Keyed>* repeated) {
    const Snapshot last = layout::last_of(region_.at<Entry>(entry).state);
    for (const Keyed& end : ends) {
        const std::uint32_t position = lists_.find(entry, end.value);
        if (position == kAbsent)
            values_.push_back(end.value);
        else if (last >= history_.floor() && may_be_hidden(entry, position))
            repeated->push_back(end);
    }
    return values_.size();
}

Shard::LabelChange& Shard::label_change(Label label) {
    if (label_edges_.size() <= label) label_edges_.resize(std::max<std::size_t>(label + 1, label_edges_.size() * 2));
    LabelChange& change = label_edges_[label];
    if (change.added + change.removed == 0) touched_labels_.push_back(label);
    return change;
}

void Shard::append_vertex(Dir dir, const Run& run, std::vector<Keyed>* fresh, std::vector<Keyed>* repeated) {
    new_labels_.clear();
    for (std::size_t at = 0; at < run.ends.size();) {
        const Label label = run.ends[at].label;
        std::size_t end = at + 1;
        while (end < run.ends.size() && run.ends[end].label == label) ++end;
        const auto ends = run.ends.subspan(at, end - at);
        at = end;

        const TermId vertex = ends[0].vertex;
        const Offset entry = label == run.ends[0].label ? run.entry
                             : run.record == 0          ? 0
                                                        : find_entry(run.record, vertex, label, dir);
        values_.clear();
        if (entry != 0 && layout::has_removals(region_.at<Entry>(entry).state)) {
            change_list(dir, entry, ends, {}, {fresh, nullptr, repeated});
            continue;
        }
        if (entry != 0 && fresh != nullptr)
            keep_new(entry, ends, repeated);
        else
            for (const Keyed& e : ends) values_.push_back(e.value);
        if (values_.empty()) continue;
        if (fresh != nullptr)
            for (TermId value : values_) fresh->push_back({vertex, label, value});
        if (dir == Dir::Out) label_change(label).added += values_.size();
        if (entry != 0) {
            append_list(entry, values_);
        } else {
            new_labels_.push_back({label, lists_.create(values_, snapshot_)});
            index_[static_cast<int>(dir)].push_back({label, vertex});
        }
    }
    if (!new_labels_.empty()) extend_record(run, dir);
}

void Shard::append_list(Offset entry, std::span<const TermId> values) {
    const std::uint64_t state = region_.at<Entry>(entry).state;
    if (!chosen_.empty() && rewrite_in_commit(entry, values)) return;
    const bool has_removals = layout::has_removals(state) || layout::Removal::is(values.back());
    lists_.append(entry, values, snapshot_, has_removals);
    appends_.push_back(
        {entry, layout::length_of(state), static_cast<std::uint32_t>(values.size()), layout::last_of(state)});
}

void Shard::put_label(Offset piece, std::uint32_t index, TermId vertex, Dir dir, std::uint32_t start,
                      const NewLabel& label) {
    auto& directory = region_.at<Directory>(piece);
    const Offset entry = Directory::entry_at(piece, Directory::capacity_of(directory.state), index);
    directory.labels()[index] = label.label;
    region_.at<Entry>(entry) = label.entry;
    appends_.push_back({entry, 0, layout::length_of(label.entry.state), 0});
    if (start >= Directory::kScannedLabels)
        slots_.push_back(
            {layout::label_hash(header().seed, vertex, label.label, dir), vertex, Ref::make_label(piece, dir, index)});
}

/// Writes labels into new pieces, the first of which starts at position `start` of the record. Returns its offset.
Offset Shard::lay_out(TermId vertex, Dir dir, std::span<const NewLabel> labels, std::uint32_t start) {
    // Doubles the capacity; but a piece that is scanned stays short.
    const std::uint32_t limit = start < Directory::kScannedLabels ? Directory::kScannedLabels : Directory::kMaxCapacity;
    const auto needed = static_cast<std::uint32_t>(std::max<std::size_t>(labels.size(), start));
    const std::uint32_t capacity = std::min(limit, needed);
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(capacity, labels.size()));
    const Offset piece = region_.allocate(Directory::bytes(capacity));
    // A one-sided reader fetches the piece in one read, without order between its words. If it sees the count of a
    // later commit but not yet the label, it must read zero (docs/adr/0016).
    std::memset(&region_.at<std::byte>(piece), 0, Directory::bytes(capacity));
    region_.word(piece) = Directory::make_state(0, capacity, count);
    for (std::uint32_t i = 0; i < count; ++i) put_label(piece, i, vertex, dir, start, labels[i]);
    if (count < labels.size()) {
        const Offset next = lay_out(vertex, dir, labels.subspan(count), start + capacity);
        region_.word(piece) = Directory::make_state(next, capacity, count);
    }
    return piece;
}

void Shard::extend_record(const Run& run, Dir dir) {
    const TermId vertex = run.ends[0].vertex;
    std::span<const NewLabel> labels = new_labels_;
    if (run.record == 0) {
        slots_.push_back({run.hash, vertex, Ref::make(lay_out(vertex, dir, labels, 0), dir)});
        return;
    }
    Offset piece = run.record;
    std::uint32_t start = 0;
    std::uint64_t state = region_.word(piece);
    while (Directory::next_of(state) != 0) {
        start += Directory::capacity_of(state);
        piece = Directory::next_of(state);
        state = region_.word(piece);
    }
    const std::uint32_t capacity = Directory::capacity_of(state);
    std::uint32_t count = Directory::count_of(state);
    for (; count < capacity && !labels.empty(); ++count, labels = labels.subspan(1))
        put_label(piece, count, vertex, dir, start, labels[0]);
    const Offset next = labels.empty() ? 0 : lay_out(vertex, dir, labels, start + capacity);
    publication_.store(region_.word(piece), Directory::make_state(next, capacity, count));
}

void Shard::reassert(Dir dir, const Keyed& end) {
    const Offset record = find_record(end.vertex, dir);
    const Offset entry = find_entry(record, end.vertex, end.label, dir);
    const std::uint32_t position = lists_.find(entry, end.value);
    reassertions_.push_back({entry, changed_.find(entry).at(position).last});
}

// Adds the vertices that got a label for the first time to the lists of their labels. The vertices ascend, and a
// counting sort by label preserves that order.
void Shard::append_index(Dir dir) {
    if (has_removals_) return change_index(dir);
    auto& items = index_[static_cast<int>(dir)];
    std::vector<Label> labels;
    for (const IndexItem& item : items) {
        if (index_ends_.size() <= item.label)
            index_ends_.resize(std::max<std::size_t>(item.label + 1, index_ends_.size() * 2));
        if (index_ends_[item.label]++ == 0) labels.push_back(item.label);
    }
    std::uint32_t end = 0;
    // From here on, index_ends_ has the start of each label.
    for (Label label : labels) end = std::exchange(index_ends_[label], end) + end;
    index_values_.resize(items.size());
    for (const IndexItem& item : items) index_values_[index_ends_[item.label]++] = item.vertex;
    std::uint32_t begin = 0;
    for (Label label : labels) {
        end = std::exchange(index_ends_[label], 0);
        const Offset entry =
            make_label_row(label) + offsetof(LabelRow, vertices) + static_cast<std::size_t>(dir) * sizeof(Entry);
        append_list(entry, std::span(index_values_).subspan(begin, end - begin));
        begin = end;
    }
    items.clear();
}

void Shard::prepare() {
    append_index(Dir::Out);
    append_index(Dir::In);
    rewrite_chosen();
    std::uint64_t edges = header().edges;
    for (Label label : touched_labels_) {
        auto& row = region_.at<LabelRow>(make_label_row(label));
        const std::uint64_t change = label_edges_[label].added - label_edges_[label].removed;
        publication_.store(row.edges, row.edges + change);
        edges += change;
    }
    publication_.store(region_.header().edges, edges);
    table_.claim(slots_, snapshot_);
    table_.publish(slots_, publication_);
}

AppendLog Shard::make_log() {
    translate_reassertions();
    std::vector<Offset> appended;
    if (!reassertions_.empty()) {
        for (const Append& append : appends_) appended.push_back(append.entry);
        std::sort(appended.begin(), appended.end());
    }
    // A list with reassertions only also gets a new last snapshot, so that readers look at this log.
    for (const Reassertion& reassertion : reassertions_) {
        if (std::binary_search(appended.begin(), appended.end(), reassertion.entry)) continue;
        appended.insert(std::upper_bound(appended.begin(), appended.end(), reassertion.entry), reassertion.entry);
        auto& entry = region_.at<Entry>(reassertion.entry);
        const std::uint32_t length = layout::length_of(entry.state);
        appends_.push_back({reassertion.entry, length, 0, layout::last_of(entry.state)});
        const std::uint64_t mark = entry.state & layout::kHasRemovals;
        publication_.store(entry.state, layout::make_state(snapshot_, length) | mark);
    }
    const std::size_t usual = appends_.size();
    AppendLog log(std::exchange(appends_, {}), std::exchange(reassertions_, {}));
    appends_.reserve(usual);
    return log;
}

void Shard::publish() {
    publication_.run();
    finish_rewriting();
    for (const Dir dir : {Dir::Out, Dir::In})
        for (const IndexTurn& turn : turns_[static_cast<int>(dir)])
            if (!turn.restores) removal_counts_.add(turn.label, dir);
    layout::store_release(region_.header().published, snapshot_);  // after every word of this shard
    region_.keep();
    lists_.keep();
    logs_.keep();
    for (const Garbage& list : new_garbage_) queue(list);
    forget_commit();
}

void Shard::forget_commit() {
    new_garbage_.clear();
    chosen_.clear();
    rewritings_.clear();
    unused_.clear();
    slots_.clear();
    appends_.clear();
    reassertions_.clear();
    for (auto& items : index_) items.clear();
    for (auto& turns : turns_) turns.clear();
    for (auto& labels : changed_labels_) labels.clear();
    for (Label label : touched_labels_) label_edges_[label] = {};
    touched_labels_.clear();
}

void Shard::abandon() {
    table_.unclaim(slots_);
    publication_.clear();
    region_.abandon();
    lists_.abandon();
    logs_.abandon();
    for (const auto& [entry, chosen] : chosen_) queue(chosen.list);
    forget_commit();
}

void Shard::set_vts(std::uint32_t stream, std::int64_t batch) {
    if (stream >= kMaxStreams) throw LimitError("too many streams: number " + std::to_string(stream));
    auto& header = region_.header();
    const std::uint64_t capacity = header.vts == 0 ? 0 : region_.at<VtsArray>(header.vts).capacity;
    if (stream >= capacity) {
        const std::uint64_t needed = std::max({kFirstVts, capacity * 2, std::uint64_t{stream} + 1});
        const Offset larger = region_.allocate_block(VtsArray::bytes(needed));
        auto& array = region_.at<VtsArray>(larger);
        array.capacity = needed;
        std::fill_n(array.batches(), needed, static_cast<std::uint64_t>(kNever));
        if (capacity != 0) {
            std::copy_n(region_.at<VtsArray>(header.vts).batches(), capacity, array.batches());
            table_.retire({header.vts, header.vts + VtsArray::bytes(capacity)}, history_.latest() + 1);
        }
        layout::store_release(header.vts, larger);  // publishes the copied array
    }
    layout::store_release(region_.at<VtsArray>(header.vts).batches()[stream], static_cast<std::uint64_t>(batch));
}

std::vector<Span> Shard::unused_spans() const {
    std::vector<Span> spans = region_.free_spans();
    for (Span span : table_.retired()) spans.push_back(span);
    for (Span span : logs_.spans()) spans.push_back(span);
    return merged(std::move(spans));
}

}  // namespace penstock
