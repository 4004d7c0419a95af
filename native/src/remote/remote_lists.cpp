// How a remote view finds and reads lists: from the cache of known lists, and from copies.
#include <algorithm>
#include <cstddef>

#include "remote/list_logs.hpp"
#include "remote/list_pieces.hpp"
#include "remote/operation.hpp"
#include "remote/remote_view.hpp"
#include "store/lookup.hpp"
#include "store/sharding.hpp"

namespace penstock::remote {

using layout::Entry;
using layout::Header;
using layout::LabelChunk;
using layout::LabelRow;
using layout::Offset;

// ---- records and entries

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
    if (record != 0 && !memory.missing()) store_.locations_.put(header.epoch, vertex, dir, record);
    return record;
}

Offset RemoteView::find_entry(Operation& operation, TermId vertex, Label label, Dir dir) const {
    const Offset record = find_record(operation, vertex, dir);
    return record == 0 ? 0 : lookup::find_entry(memory(operation, shard_of(vertex)), record, vertex, label, dir);
}

RemoteView::List RemoteView::load(Operation& operation, std::uint32_t shard, Offset offset) const {
    if (offset == 0) return {};
    const auto& entry = memory(operation, shard).at<Entry>(offset);
    // In place: state before head, see layout::Entry. Copied: the changes by commits up to the snapshot are complete.
    // Of a later commit only `last` is valid; the length before it is in its log.
    const std::uint64_t state = layout::load_acquire(entry.state);
    const TermId head = layout::load_acquire(entry.head);
    List list{shard, offset, head, state};
    list.read_state = state;
    settle(operation, list);
    return list;
}

/// Makes state and head of a list that is not whole agree. They may be words of two versions of a list that was
/// rewritten. Its old words and logs exist as long as the view's lease.
void RemoteView::settle(Operation& operation, List& list) const {
    if (operation.walk.missing || whole(list)) return;
    const ShardMemory memory = this->memory(operation, list.shard);
    const std::uint64_t settled = lookup::settled_state(memory, list.state, list.head);
    list.version = ListVersion::of(memory, list.head);
    if (memory.missing()) return;
    list.state = settled;
    // In copies, the head can also be older than the state. Then the view's snapshot is before the rewriting, whose log
    // has the length that the list had before.
    if (images_[list.shard].base != nullptr || layout::last_of(list.state) <= snapshot_) return;
    const ListLogs logs(memory, list.entry, list.version);
    const layout::Append append = walk_to_oldest_after(logs, layout::last_of(list.state), snapshot_);
    if (memory.missing() || !logs.rewritten_later()) return;
    list.state = layout::make_state(append.previous, append.before) | layout::kHasRemovals;
}

/// Whether the cached words are the first words of a list with this entry. If not, the list was rewritten since, or it
/// had its single value in the entry. The same head is not proof enough, because memory is used again. But if the list
/// was rewritten up to this view's snapshot and its old extents are already used again by the list itself, the shard
/// retains no commits from before the rewriting.
bool RemoteView::continues(const KnownList& known, std::uint32_t shard, const Entry& now) const {
    if (known.read_state == now.state) return !known.is_visible_part() || sees_all(known.state);
    if (known.is_visible_part() || known.head != now.head || layout::has_removals(now.state)) return false;
    const Header& header = images_[shard].header;
    const Snapshot as_of = known.as_of.load(std::memory_order_relaxed);
    return as_of >= header.rewritten ||
           (std::uint64_t{as_of} + 1 >= header.oldest_readable && layout::last_of(now.state) <= snapshot_);
}

/// Whether the view needs no read to use a cached list. It reads the entry of a rewritten list if it needs append logs,
/// because the cache has no ListVersion.
bool RemoteView::is_current(const KnownList& known) const {
    if (known.as_of.load(std::memory_order_relaxed) < snapshot_) return false;
    if (known.is_visible_part()) return sees_all(known.state);
    return !layout::is_rewritten(known.head) || layout::whole_before(known.state, visibility_.first_excluded);
}

Offset RemoteView::label_row(std::uint32_t shard, Label label) const {
    if (label > layout::kMaxLabel) return 0;
    const Offset chunk = images_[shard].header.label_chunks[LabelChunk::number(label)];
    return chunk == 0 ? 0 : LabelChunk::row_at(chunk, label);
}

// ---- finding lists

std::vector<RemoteView::Sought> RemoteView::sought(std::span<const TermId> keys) const {
    std::vector<Sought> all;
    all.reserve(keys.size());
    for (const TermId key : keys) all.push_back({shard_of(key), key, 0});
    return all;
}

std::vector<RemoteView::Sought> RemoteView::index_lists(Label label, Dir dir) const {
    std::vector<Sought> all;
    for (std::uint32_t shard = 0; shard < images_.size(); ++shard) {
        const Offset row = label_row(shard, label);
        const Offset entry = offsetof(LabelRow, vertices) + static_cast<std::size_t>(dir) * sizeof(Entry);
        all.push_back({shard, kUnbound, row == 0 ? 0 : row + entry});
    }
    return all;
}

/// The cached versions of the lists.
std::vector<const KnownList*> RemoteView::known_lists(Operation& operation, std::span<const Sought> sought,
                                                      std::span<const std::uint32_t> of, Label label, Dir dir) const {
    std::vector<ListKey> keys;
    keys.reserve(of.size());
    for (const std::uint32_t i : of)
        keys.push_back({images_[sought[i].shard].header.epoch, sought[i].vertex, label, dir});
    std::vector<const KnownList*> found(keys.size());
    if (!keys.empty()) store_.known_.find(keys, found, operation.hold);
    return found;
}

// Each key is searched in the cache once. A repeated search may give another result, because the cache changes
// meanwhile, and the data that it leads to was not copied.
std::vector<RemoteView::List> RemoteView::find_lists(Operation& operation, std::span<const Sought> sought, Label label,
                                                     Dir dir) const {
    std::vector<List> lists(sought.size());
    std::vector<std::uint32_t> remote;
    for (std::uint32_t i = 0; i < sought.size(); ++i) {
        if (images_[sought[i].shard].base == nullptr) {
            if (!sought[i].is_nothing()) remote.push_back(i);
        } else {
            operation.walk = {};
            lists[i] = walk_to(operation, sought[i], label, dir);
        }
    }
    const std::vector<const KnownList*> known = known_lists(operation, sought, remote, label, dir);
    std::vector<Entry> now(remote.size());  // of the known lists that may have grown
    std::vector<std::uint32_t> left;        // those of `remote` that require reads
    for (std::uint32_t k = 0; k < remote.size(); ++k) {
        const auto& [shard, vertex, entry] = sought[remote[k]];
        const KnownList* const list = known[k];
        if (list != nullptr && is_current(*list)) {
            lists[remote[k]] = {shard, list->entry, 0, list->state, list};
            continue;
        }
        left.push_back(k);
        if (list != nullptr && list->entry != 0)
            operation.copies.also(
                {images_[shard].region, list->entry, sizeof(Entry), reinterpret_cast<std::byte*>(&now[k])});
    }
    std::vector<std::uint8_t> asked(left.size());
    operation.in_rounds(left.size(), [&](std::uint32_t n) {
        const std::uint32_t k = left[n];
        const KnownList* const before = known[k];
        List& list = lists[remote[k]];
        if (before != nullptr && before->entry != 0) {
            operation.walk.missing = asked[n] == 0;
            asked[n] = 1;
            if (operation.walk.missing) return;
            const std::uint32_t shard = sought[remote[k]].shard;
            const bool is_same = before->read_state == now[k].state;
            if (is_same) before->confirm(as_of(shard));
            const KnownList* const known_part = continues(*before, shard, now[k]) ? before : nullptr;
            list = {shard, before->entry, now[k].head, now[k].state, known_part};
            list.read_state = now[k].state;
            if (is_same && known_part != nullptr) list.state = known_part->state;
            settle(operation, list);
        } else {
            list = walk_to(operation, sought[remote[k]], label, dir);
            if (before == nullptr || list.entry != 0 || operation.walk.missing) return;
            list.known = before;  // the list still does not exist
            before->confirm(snapshot_);
        }
    });
    return lists;
}

RemoteView::List RemoteView::walk_to(Operation& operation, const Sought& sought, Label label, Dir dir) const {
    const Offset entry = sought.entry != 0 ? sought.entry : find_entry(operation, sought.vertex, label, dir);
    return load(operation, sought.shard, entry);
}

/// An entry that is read now shows everything that the shard had published when the view was created.
Snapshot RemoteView::as_of(std::uint32_t shard) const { return static_cast<Snapshot>(images_[shard].header.published); }

// ---- reading lists

bool RemoteView::at_hand(const List& list) const {
    return images_[list.shard].base != nullptr ||
           (list.known != nullptr && list.known->state == list.state && whole(list));
}

std::uint32_t RemoteView::ranges_of(Operation& operation, const List& list, Ranges& ranges) const {
    const ShardMemory memory = this->memory(operation, list.shard);
    const std::uint32_t length =
        visible_ranges(visibility_, ListLogs(memory, list.entry, list.version), list.state, ranges);
    if (layout::has_removals(list.state) && !memory.missing()) apply_removals(memory, list.head, length, ranges);
    return length;
}

std::uint64_t RemoteView::visible_length(Operation& operation, const List& list) const {
    if (whole(list)) return list.length();
    Ranges ranges;
    ranges_of(operation, list, ranges);
    std::uint64_t total = 0;
    for (const PositionRange& range : ranges) total += range.end - range.begin;
    return total;
}

/// Copies the values that are visible to this view.
void RemoteView::read_values(Operation& operation, std::span<const List> lists) const {
    std::vector<const List*> left;
    for (const List& list : lists)
        if (list.entry != 0 && !at_hand(list)) left.push_back(&list);
    operation.in_rounds(left.size(), [&](std::uint32_t i) {
        for_each_visible(operation, *left[i], [](const TermId*, std::size_t) {});
    });
}

std::uint32_t RemoteView::find_value(const ShardMemory& memory, const List& list, TermId value) const {
    if (list.known == nullptr) return lookup::find_value(memory, list.head, list.length(), value);
    std::uint32_t found = list.known->find(value);
    if (found != lookup::kAbsent) return found;
    // The growth is short.
    std::uint32_t position = list.known->length();
    for_each_position(memory, list, position, list.length(), [&](const TermId* values, std::size_t n) {
        const std::size_t at = lookup::scan(values, n, value);
        if (at < n && found == lookup::kAbsent) found = position + static_cast<std::uint32_t>(at);
        position += static_cast<std::uint32_t>(n);
    });
    return found;
}

/// `seen`: the values visible to this view, filled when the list was copied; shared by all rows.
bool RemoteView::list_contains(Operation& operation, const List& list, std::optional<Ranges>& seen,
                               TermId value) const {
    if (list.length() == 0) return false;
    const ShardMemory memory = this->memory(operation, list.shard);
    if (!seen) {
        Ranges ranges;
        if (!whole(list)) ranges_of(operation, list, ranges);
        // Copies the whole list, so that it can be cached.
        if (!at_hand(list)) for_each_visible(operation, list, [](const TermId*, std::size_t) {});
        if (memory.missing()) return false;
        seen = std::move(ranges);
    }
    const std::uint32_t position = find_value(memory, list, value);
    if (position >= list.length()) return false;  // absent, or from a commit after this state
    return whole(list) || std::any_of(seen->begin(), seen->end(), [&](const PositionRange& range) {
               return range.begin <= position && position < range.end;
           });
}

// ---- caching lists

/// Adds the lists that this view sees completely to the cache.
void RemoteView::cache_lists(Operation& operation, std::span<const Sought> sought, std::span<const List> lists,
                             Label label, Dir dir) const {
    std::vector<KnownLists::Reading> readings;
    std::vector<TermId> values;
    std::vector<KnownExtent> extents;
    std::vector<std::pair<std::size_t, std::size_t>> sizes;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        const ShardImage& image = images_[sought[i].shard];
        const List& list = lists[i];
        if (image.base != nullptr || sought[i].is_nothing()) continue;
        const bool is_part = !whole(list);
        if (is_part && (!sees_all(list.state) || list.state != list.read_state)) continue;
        if (list.known != nullptr && list.known->state == list.state) continue;
        const std::size_t first_value = values.size(), first_extent = extents.size();
        operation.walk = {};
        if (is_part)
            append_visible(operation, list, values, extents);
        else if (list.entry != 0)
            append_all(operation, list, values, extents);
        if (operation.walk.missing) {  // its values were not requested
            values.resize(first_value);
            extents.resize(first_extent);
            continue;
        }
        // Its absence is certain: the header that shows it is no newer than the snapshot.
        readings.push_back({{image.header.epoch, sought[i].vertex, label, dir},
                            list.entry,
                            is_part ? layout::make_state(layout::last_of(list.state),
                                                         static_cast<std::uint32_t>(values.size() - first_value))
                                    : list.state,
                            list.head,
                            list.state,
                            list.entry == 0 ? snapshot_ : as_of(sought[i].shard),
                            {},
                            {}});
        sizes.emplace_back(values.size() - first_value, extents.size() - first_extent);
    }
    std::size_t value = 0, extent = 0;
    for (std::size_t k = 0; k < readings.size(); ++k) {
        readings[k].values = std::span(values).subspan(value, sizes[k].first);
        readings[k].extents = std::span(extents).subspan(extent, sizes[k].second);
        value += sizes[k].first;
        extent += sizes[k].second;
    }
    if (!readings.empty()) store_.known_.put(readings);
}

/// Appends the values of a list with removals, and one extent for the search among them.
void RemoteView::append_visible(Operation& operation, const List& list, std::vector<TermId>& values,
                                std::vector<KnownExtent>& extents) const {
    const auto first = static_cast<std::ptrdiff_t>(values.size());
    for_each_visible(operation, list,
                     [&](const TermId* more, std::size_t n) { values.insert(values.end(), more, more + n); });
    const auto begin = values.begin() + first;
    const auto sorted = static_cast<std::uint32_t>(std::is_sorted_until(begin, values.end()) - begin);
    extents.push_back({0, 0, static_cast<std::uint32_t>(values.end() - begin), sorted});
}

/// Appends all values of a list and its extents, including cached ones.
void RemoteView::append_all(Operation& operation, const List& list, std::vector<TermId>& values,
                            std::vector<KnownExtent>& extents) const {
    const KnownList* known = list.known;
    // The value that was in the entry has moved to the first extent.
    if (known != nullptr && known->extents.empty() && layout::is_extent(list.head)) known = nullptr;
    if (known != nullptr) {
        values.insert(values.end(), known->values.begin(), known->values.end());
        extents.insert(extents.end(), known->extents.begin(), known->extents.end());
    }
    const std::uint32_t begin = known != nullptr ? known->length() : 0;
    if (begin == list.length()) return;
    if (!layout::is_extent(list.head)) return values.push_back(list.head);
    for_each_unknown(memory(operation, list.shard), list, begin, list.length(),
                     [&](const KnownExtent& extent, const TermId* more, std::uint32_t, std::size_t n) {
                         values.insert(values.end(), more, more + n);
                         if (known == nullptr || extent.offset != known->extents.back().offset)
                             extents.push_back(extent);
                     });
}

}  // namespace penstock::remote
