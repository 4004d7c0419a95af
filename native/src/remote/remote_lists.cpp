// How a remote view finds lists and reads them: from what is known, and from copies.
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
    if (record != 0 && !memory.missing()) store_.locations_.remember(header.epoch, vertex, dir, record);
    return record;
}

Offset RemoteView::find_entry(Operation& operation, TermId vertex, Label label, Dir dir) const {
    const Offset record = find_record(operation, vertex, dir);
    return record == 0 ? 0 : lookup::find_entry(memory(operation, shard_of(vertex)), record, vertex, label, dir);
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

/// What is known of those lists that lie elsewhere, nullptr of the others.
std::vector<const KnownList*> RemoteView::known_lists(Operation& operation, std::span<const Sought> sought, Label label,
                                                      Dir dir) const {
    std::vector<ListKey> keys;
    std::vector<std::uint32_t> number;
    for (std::uint32_t i = 0; i < sought.size(); ++i) {
        const ShardImage& image = images_[sought[i].shard];
        if (image.base != nullptr || sought[i].is_nothing()) continue;
        keys.push_back({image.header.epoch, sought[i].vertex, label, dir});
        number.push_back(i);
    }
    std::vector<const KnownList*> all(sought.size()), found(keys.size());
    if (!keys.empty()) store_.known_.find(keys, found, operation.hold);
    for (std::size_t k = 0; k < keys.size(); ++k) all[number[k]] = found[k];
    return all;
}

// Found once for each key: a look-up that is done again may take another way (what is known changes meanwhile), and
// what lies there was not copied.
std::vector<RemoteView::List> RemoteView::find_lists(Operation& operation, std::span<const Sought> sought, Label label,
                                                     Dir dir) const {
    const std::vector<const KnownList*> known = known_lists(operation, sought, label, dir);
    std::vector<List> lists(sought.size());
    std::vector<Entry> now(sought.size());  // of the known ones that may have grown
    std::vector<std::uint8_t> fresh(sought.size()), asked(sought.size());
    for (std::size_t i = 0; i < sought.size(); ++i) {
        if (known[i] == nullptr) continue;
        fresh[i] = known[i]->as_of.load(std::memory_order_relaxed) >= snapshot_;  // looked at once: others confirm it
        if (fresh[i] == 0 && known[i]->entry != 0)
            operation.copies.also({images_[sought[i].shard].region, known[i]->entry, sizeof(Entry),
                                   reinterpret_cast<std::byte*>(&now[i])});
    }
    operation.in_rounds(sought.size(), [&](std::uint32_t i) {
        const auto& [shard, vertex, entry] = sought[i];
        const KnownList* const list = known[i];
        if (list != nullptr && fresh[i] != 0) {
            lists[i] = {shard, list->entry, 0, list->state, list};
        } else if (list != nullptr && list->entry != 0) {
            operation.walk.missing = asked[i] == 0;
            asked[i] = 1;
            if (operation.walk.missing) return;
            lists[i] = {shard, list->entry, now[i].head, now[i].state, list};
            if (now[i].state == list->state) list->confirm(as_of(shard));
        } else {
            lists[i] = load(operation, shard, entry != 0 ? entry : find_entry(operation, vertex, label, dir));
            if (list == nullptr || lists[i].entry != 0 || operation.walk.missing) return;
            lists[i].known = list;  // still none
            list->confirm(snapshot_);
        }
    });
    return lists;
}

/// An entry that is read now shows all that the shard had published when the view began.
Snapshot RemoteView::as_of(std::uint32_t shard) const { return static_cast<Snapshot>(images_[shard].header.published); }

// ---- reading lists

bool RemoteView::at_hand(const List& list) const {
    return images_[list.shard].base != nullptr ||
           (list.known != nullptr && list.known->state == list.state && whole(list));
}

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

/// Copies what this view sees of them.
void RemoteView::read_values(Operation& operation, std::span<const List> lists) const {
    operation.in_rounds(lists.size(), [&](std::uint32_t i) {
        if (!at_hand(lists[i])) for_each_visible(operation, lists[i], [](const TermId*, std::size_t) {});
    });
}

std::uint32_t RemoteView::find_value(const ShardMemory& memory, const List& list, TermId value) const {
    if (list.known == nullptr) return lookup::find_value(memory, list.head, list.length(), value);
    std::uint32_t found = list.known->find(value);
    if (found != lookup::kAbsent) return found;
    // What it has grown by is short.
    std::uint32_t position = list.known->length();
    for_each_position(memory, list, position, list.length(), [&](const TermId* values, std::size_t n) {
        const std::size_t at = lookup::scan(values, n, value);
        if (at < n && found == lookup::kAbsent) found = position + static_cast<std::uint32_t>(at);
        position += static_cast<std::uint32_t>(n);
    });
    return found;
}

/// `seen`: what this view sees of the list, once it was copied; kept from row to row.
bool RemoteView::list_contains(Operation& operation, const List& list, std::optional<Ranges>& seen,
                               TermId value) const {
    if (list.length() == 0) return false;
    const ShardMemory memory = this->memory(operation, list.shard);
    if (!seen) {
        Ranges ranges;
        if (!whole(list)) ranges_of(operation, list, ranges);
        // What is copied is copied whole, so that it can be remembered.
        if (!at_hand(list)) for_each_visible(operation, list, [](const TermId*, std::size_t) {});
        if (memory.missing()) return false;
        seen = std::move(ranges);
    }
    const std::uint32_t position = find_value(memory, list, value);
    if (position >= list.length()) return false;  // absent, or of a commit that this state does not know
    return whole(list) || std::any_of(seen->begin(), seen->end(), [&](const PositionRange& range) {
               return range.begin <= position && position < range.end;
           });
}

// ---- remembering lists

/// Keeps what was read of lists that this view sees whole.
void RemoteView::remember(Operation& operation, std::span<const Sought> sought, std::span<const List> lists,
                          Label label, Dir dir) const {
    std::vector<KnownLists::Reading> readings;
    std::vector<TermId> values;
    std::vector<KnownExtent> extents;
    std::vector<std::pair<std::size_t, std::size_t>> sizes;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        const ShardImage& image = images_[sought[i].shard];
        const List& list = lists[i];
        if (image.base != nullptr || sought[i].is_nothing() || !whole(list)) continue;
        if (list.known != nullptr && list.known->state == list.state) continue;
        const std::size_t first_value = values.size(), first_extent = extents.size();
        operation.walk = {};
        if (list.entry != 0) append_all(operation, list, values, extents);
        if (operation.walk.missing) {  // nobody has asked for its values
            values.resize(first_value);
            extents.resize(first_extent);
            continue;
        }
        // That there is none was found by a header that is no newer than the snapshot, for sure.
        readings.push_back({{image.header.epoch, sought[i].vertex, label, dir},
                            list.entry,
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

/// All values of a list and its extents, known ones included.
void RemoteView::append_all(Operation& operation, const List& list, std::vector<TermId>& values,
                            std::vector<KnownExtent>& extents) const {
    const KnownList* known = list.known;
    // A value that lay in the entry then lies in the first extent now.
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
