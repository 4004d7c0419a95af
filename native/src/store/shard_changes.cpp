// The writer's side of removals: commits that remove edges, and additions to lists that have removal words.
#include <algorithm>

#include "store/shard.hpp"

namespace penstock {

using layout::Entry;
using layout::LabelRow;
using layout::Offset;
using layout::Removal;

namespace {

/// Takes the elements from the front of `rest` that satisfy the condition.
template <class T, class Condition>
std::span<const T> take_while(std::span<const T>& rest, Condition condition) {
    std::size_t n = 0;
    while (n < rest.size() && condition(rest[n])) ++n;
    const auto taken = rest.first(n);
    rest = rest.subspan(n);
    return taken;
}

/// Calls visit(key, those of a, those of b) for each key of two sequences that ascend by it.
template <class A, class B, class Key, class Visit>
void for_each_group(std::span<const A> a, std::span<const B> b, Key key, Visit visit) {
    while (!a.empty() || !b.empty()) {
        const auto next = b.empty() || (!a.empty() && key(a[0]) < key(b[0])) ? key(a[0]) : key(b[0]);
        const auto equal = [&](const auto& element) { return key(element) == next; };
        const auto of_a = take_while(a, equal);
        const auto of_b = take_while(b, equal);
        visit(next, of_a, of_b);
    }
}

}  // namespace

std::uint64_t Shard::vertex_count(Label label, Dir dir) const {
    const auto& row = region_.at<LabelRow>(label_row(label));
    const std::uint64_t words = layout::length_of(layout::load_acquire(row.vertices[static_cast<int>(dir)].state));
    // A removal adds a word and hides a value. A restoration adds a word and shows a value.
    return words - std::min(words, 2 * std::uint64_t{removal_counts_.get(label, dir)});
}

/// The counts of a region that was saved.
void Shard::count_removals() {
    const Label end = label_end();
    for (Label label = 1; label < end; ++label)
        for (const Dir dir : {Dir::Out, Dir::In}) {
            const Offset row = label_row(label);
            if (row == 0) continue;
            const Entry& index = region_.at<LabelRow>(row).vertices[static_cast<int>(dir)];
            if (!layout::has_removals(index.state)) continue;
            std::uint32_t removals = 0;
            lookup::for_each_removal(region_, index.head, 0, layout::length_of(index.state),
                                     [&](TermId word, std::uint32_t) { removals += Removal::restores(word) ? 0 : 1; });
            removal_counts_.reserve(label);
            removal_counts_.set(label, dir, removals);
            has_removals_ = true;
        }
}

void Shard::change(Dir dir, std::span<const Keyed> added, std::span<const Keyed> removed, const Effects& effects) {
    struct Ends {
        std::span<const Keyed> added, removed;
    };
    const bool empty = header().published == 0;
    Run runs[kGroup];
    Ends ends[kGroup];
    std::size_t n = 0;
    const auto change_group = [&] {
        if (!empty) find_lists({runs, n}, dir);
        for (std::size_t i = 0; i < n; ++i) {
            runs[i].ends = ends[i].added;
            runs[i].entry = 0;
            change_vertex(dir, runs[i], ends[i].removed, effects);
        }
        n = 0;
    };
    for_each_group(
        added, removed, [](const Keyed& end) { return end.vertex; },
        [&](TermId vertex, std::span<const Keyed> more, std::span<const Keyed> fewer) {
            const std::uint64_t hash = layout::record_hash(header().seed, vertex, dir);
            // Only the lists of one label are prefetched. Those of removed edges exist.
            runs[n] = {fewer.empty() ? more : fewer, hash, lookup::current_bucket(region_, hash)};
            ends[n] = {more, fewer};
            if (!empty) prefetch_bucket(runs[n]);
            if (++n == kGroup) change_group();
        });
    change_group();
}

void Shard::change_vertex(Dir dir, const Run& run, std::span<const Keyed> removed, const Effects& effects) {
    std::vector<Keyed> created;  // in lists that do not exist yet
    for_each_group(
        run.ends, removed, [](const Keyed& end) { return end.label; },
        [&](Label label, std::span<const Keyed> more, std::span<const Keyed> fewer) {
            const TermId vertex = more.empty() ? fewer[0].vertex : more[0].vertex;
            const Offset entry = run.record == 0 ? 0 : find_entry(run.record, vertex, label, dir);
            if (entry != 0)
                change_list(dir, entry, more, fewer, effects);
            else
                created.insert(created.end(), more.begin(), more.end());
        });
    if (created.empty()) return;
    Run rest = run;
    rest.ends = created;
    append_vertex(dir, rest, effects.added, effects.repeated);
}

bool Shard::may_be_hidden(Offset entry, std::uint32_t position) const {
    const Snapshot last = layout::last_of(region_.at<Entry>(entry).state);
    const ListVersion version = ListVersion::of(region_, region_.at<Entry>(entry).head);
    return last >= history_.floor() && history_.may_hide(number_, entry, last, version, position, source_);
}

/// Both spans are of one vertex and label, whose list exists.
void Shard::change_list(Dir dir, Offset entry, std::span<const Keyed> added, std::span<const Keyed> removed,
                        const Effects& effects) {
    const ChangedList& list = changed_.find(entry);
    const std::uint32_t before = list.values();
    std::uint32_t more = 0, fewer = 0;
    values_.clear();
    const auto change = [&](const Keyed& end, bool adds) {
        const std::uint32_t position = adds ? lists_.find(entry, end.value) : lists_.find_likely(entry, end.value);
        if (position == kAbsent) {  // it was never there
            if (adds) values_.push_back(end.value);
            return adds;
        }
        const auto [last, present] = list.at(position);
        if (present != adds) {
            values_.push_back(Removal::make(position, adds));
            return true;
        }
        if (effects.repeated != nullptr && may_be_hidden(entry, last)) effects.repeated->push_back(end);
        return false;
    };
    for (const Keyed& end : added) {
        if (!change(end, true)) continue;
        ++more;
        if (effects.added != nullptr) effects.added->push_back(end);
    }
    for (const Keyed& end : removed) {
        if (!change(end, false)) continue;
        ++fewer;
        if (effects.removed != nullptr) effects.removed->push_back(end);
    }
    if (values_.empty()) return;
    std::sort(values_.begin(), values_.end());
    append_list(entry, values_);

    const Keyed& end = added.empty() ? removed[0] : added[0];
    if (dir == Dir::Out) {
        LabelChange& edges = label_change(end.label);
        edges.added += more;
        edges.removed += fewer;
    }
    const std::uint32_t after = before + more - fewer;
    queue_if_worth({entry, end.vertex, end.label, dir, false, snapshot_},
                   layout::length_of(region_.at<Entry>(entry).state) + values_.size(), after);
    if ((before == 0) != (after == 0)) turns_[static_cast<int>(dir)].push_back({end.label, end.vertex, before == 0});
    if (fewer > 0) has_removals_ = true;
    if (fewer > 0) changed_labels_[static_cast<int>(dir)].push_back(end.label);
}

/// As append_index(), for a commit that removes edges, or adds edges to vertices that had lost their last one.
void Shard::change_index(Dir dir) {
    auto& items = index_[static_cast<int>(dir)];
    auto& turns = turns_[static_cast<int>(dir)];
    auto& labels = changed_labels_[static_cast<int>(dir)];
    const auto sort_labels = [&] {
        std::sort(labels.begin(), labels.end());
        labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    };
    for (const IndexTurn& turn : turns) labels.push_back(turn.label);
    sort_labels();
    const std::vector<Label> marked = labels;
    for (const IndexItem& item : items) labels.push_back(item.label);
    sort_labels();
    // Stable: the vertices of a label ascend.
    const auto by_label = [](const auto& a, const auto& b) { return a.label < b.label; };
    std::stable_sort(items.begin(), items.end(), by_label);
    std::stable_sort(turns.begin(), turns.end(), by_label);
    std::span<const IndexItem> items_left = items;
    std::span<const IndexTurn> turns_left = turns;
    for (const Label label : labels) {
        const auto of_label = [&](const auto& item) { return item.label == label; };
        const auto new_here = take_while(items_left, of_label);
        const auto turns_here = take_while(turns_left, of_label);
        change_index_of(label, dir, new_here, turns_here, std::binary_search(marked.begin(), marked.end(), label));
    }
    items.clear();
}

/// Words that add a vertex to the index list of a label, or remove it. A vertex whose record was dropped, or whose
/// label is new, may still be in the list, removed; one without edges is not there if the list was rewritten since.
void Shard::collect_index_words(Offset entry, std::span<const IndexItem> items, std::span<const IndexTurn> turns) {
    const bool marked = layout::has_removals(region_.at<Entry>(entry).state);
    const auto add = [&](TermId vertex, bool restores) {
        const std::uint32_t position = !restores ? lists_.find_likely(entry, vertex)
                                       : marked  ? lists_.find(entry, vertex)
                                                 : kAbsent;
        index_values_.push_back(position == kAbsent ? vertex : Removal::make(position, restores));
    };
    index_values_.clear();
    for (const IndexItem& item : items) add(item.vertex, true);
    for (const IndexTurn& turn : turns) add(turn.vertex, turn.restores);
    std::sort(index_values_.begin(), index_values_.end());
}

/// Marks the index list of a label from which edges were removed (`marks`), even if no vertex was: to a view that
/// excludes other commits, it may still show a vertex without visible edges (StoreView::vertices).
void Shard::change_index_of(Label label, Dir dir, std::span<const IndexItem> items, std::span<const IndexTurn> turns,
                            bool marks) {
    const Offset entry =
        make_label_row(label) + offsetof(LabelRow, vertices) + static_cast<std::size_t>(dir) * sizeof(Entry);
    collect_index_words(entry, items, turns);
    const std::uint64_t state = region_.at<Entry>(entry).state;
    if (!marks && !layout::has_removals(state)) return append_list(entry, index_values_);
    removal_counts_.reserve(label);
    const std::uint32_t length = layout::length_of(state), more = static_cast<std::uint32_t>(index_values_.size());
    if (more > 0) {
        std::uint64_t values = vertex_count(label, dir) + items.size();
        for (const IndexTurn& turn : turns) values = turn.restores ? values + 1 : values - 1;
        queue_if_worth({entry, kUnbound, label, dir, false, snapshot_}, length + more, values);
        if (!chosen_.empty() && rewrite_in_commit(entry, index_values_)) return;
        lists_.append(entry, index_values_, snapshot_, true);
    } else if (!layout::has_removals(state)) {
        publication_.store(region_.at<Entry>(entry).state,
                           layout::make_state(snapshot_, length) | layout::kHasRemovals);
    } else {
        return;
    }
    appends_.push_back({entry, length, more, layout::last_of(state)});
}

}  // namespace penstock
