// Lists without their removed values, and memory that no reader needs any longer (docs/adr/0072-compaction.md).
#include <algorithm>
#include <utility>

#include "errors.hpp"
#include "store/shard.hpp"
#include "store/visibility.hpp"

namespace penstock {

using layout::Directory;
using layout::Entry;
using layout::LabelRow;
using layout::ListExtent;
using layout::Offset;
using layout::Ref;
using layout::Rewritten;
using layout::Slot;

namespace {

constexpr std::uint64_t kBudget = 32768;  // words rewritten after each commit, at least
constexpr std::uint64_t kPerWord = 64;    // and for each word that it appended to a list with removals
constexpr std::uint64_t kRare = 16;       // of so many words of a long list, one is garbage: it is rewritten
constexpr std::uint64_t kMaxBudget = 1u << 22;
constexpr std::uint64_t kShort = 4096;     // words of a list that is rewritten for any garbage
constexpr std::size_t kLooks = 64;         // lists looked at after each commit, at least
constexpr std::size_t kExtent = 1u << 18;  // values of an extent, or more if the list is longer than kExtents of these
constexpr std::size_t kExtents = 16;
constexpr std::uint64_t kFewEmptied = 2;

/// Whether removed values and removal words are more than a third of a list.
constexpr bool is_much(std::uint64_t length, std::uint64_t values) { return 2 * (length - values) >= values; }

/// Whether look-ups would be faster without them. In a long list they are few among the other words, and the words that
/// were appended to it pay for its rewriting.
constexpr bool is_worth(std::uint64_t length, std::uint64_t values) {
    return length <= kShort || kRare * (length - values) >= length;
}

}  // namespace

/// `length` and `values` are those of the list after the running commit.
void Shard::queue_if_worth(Garbage list, std::uint64_t length, std::uint64_t values) {
    list.many = is_much(length, values);
    if (length > values && is_worth(length, values)) new_garbage_.push_back(list);
    budget_ += kPerWord * (length - layout::length_of(region_.at<Entry>(list.entry).state));
}

void Shard::queue(const Garbage& list) {
    const auto [known, fresh] = garbage_.try_emplace(list.entry, list);
    if (!fresh && known->second.many >= list.many) return;
    known->second.many = list.many;
    (list.many ? many_ : few_).push_back(list.entry);
}

/// Between commits: whether all readers, now and later, see the whole list as it is. Then it makes no difference to
/// them whether it has its removed values. In a commit: whether they all see the commit that queued the list, which is
/// not before the one that has last rewritten it.
bool Shard::may_rewrite(const Garbage& list) const {
    if (rewrites_) return list.since < floor_;
    return layout::last_of(region_.at<Entry>(list.entry).state) < history_.floor();
}

std::vector<Garbage> Shard::garbage() const {
    std::vector<Garbage> lists;
    for (const auto& [entry, list] : garbage_) lists.push_back(list);
    return lists;
}

void Shard::restore_garbage(std::span<const Garbage> lists) {
    for (Garbage list : lists) {
        list.since = static_cast<Snapshot>(header().published);
        queue(list);
    }
}

std::size_t Shard::index_bytes() const {
    constexpr std::size_t kNode = sizeof(Garbage) + 3 * sizeof(void*);
    return lists_.bytes() + changed_.bytes() + garbage_.size() * kNode + (many_.size() + few_.size()) * sizeof(Offset);
}

/// Moves single values back into their entries, once no reader can combine the entry with the state of the list before
/// it was rewritten, or needs positions of that time.
void Shard::shorten() {
    for (; !short_.empty() && short_.front().since < floor_; short_.pop_front()) {
        const auto current = short_since_.find(short_.front().entry);
        if (current == short_since_.end() || current->second != short_.front().since) continue;
        short_since_.erase(current);
        auto& entry = region_.at<Entry>(short_.front().entry);
        const TermId head = entry.head;
        const std::uint32_t length = layout::length_of(entry.state);
        if (length > 1 || !layout::is_rewritten(head)) continue;
        const TermId value = region_.at<ListExtent>(layout::extent_of(head)).values()[0];
        layout::store_release(entry.head, length == 0 ? kUnbound : value);
        retire_extents(head, length);
    }
}

void Shard::compact() { choose_lists(); }

/// Rewrites lists within the budget, or selects those that the running commit rewrites.
void Shard::choose_lists() {
    budget_ = std::min(budget_ + kBudget, kMaxBudget);
    std::size_t looks = kLooks + budget_ / kPerWord;
    for (auto* lists : {&many_, &few_})
        for (std::size_t left = lists->size(); left > 0 && looks > 0 && budget_ > 0; --left, --looks)
            if (!choose_first(*lists)) return;
    if (garbage_.empty()) budget_ = 0;
}

/// Rewrites or selects the first list of a queue, or puts it at the end. Returns false if this commit can do no more.
bool Shard::choose_first(std::deque<Offset>& lists) {
    const Offset entry = lists.front();
    const auto known = garbage_.find(entry);
    if (known == garbage_.end()) {  // rewritten
        lists.pop_front();
        return true;
    }
    const std::uint64_t words = layout::length_of(region_.at<Entry>(entry).state);
    // Memory is reclaimed at once, on credit. Otherwise a list waits until the words that were appended pay for it.
    if (!known->second.many && words > budget_) return false;
    lists.pop_front();
    const Garbage list = known->second;
    if (!may_rewrite(list)) {
        lists.push_back(entry);
        return true;
    }
    try {
        if (rewrites_)
            chosen_.emplace(entry, Chosen{list});
        else
            rewrite(list);
    } catch (const LimitError&) {  // the region is full: nothing has changed
        region_.abandon();
        lists.push_back(entry);
        return false;
    }
    garbage_.erase(entry);
    budget_ -= std::min(budget_, words);
    return true;
}

/// The visible values of a list, ascending. Nearly all of them do already.
std::vector<TermId> Shard::sorted_values_of(TermId head, std::uint32_t length) const {
    std::vector<PositionRange> ranges{{0, length}};
    apply_removals(region_, head, length, ranges);
    std::vector<TermId> values;
    for (const PositionRange& range : ranges)
        lookup::for_each_piece(region_, head, range.begin, range.end, [&](const TermId* piece, std::size_t n) {
            values.insert(values.end(), piece, piece + n);
        });
    const auto rest = std::is_sorted_until(values.begin(), values.end());
    std::sort(rest, values.end());
    std::inplace_merge(values.begin(), rest, values.end());
    return values;
}

/// Writes the extents of a rewritten list, and returns the first. Long lists have several, which find room more easily
/// between other memory than one.
Offset Shard::write_extents(std::span<const TermId> words, std::size_t ascending, const Rewritten& rewritten) {
    const std::size_t most = std::max(kExtent, words.size() / kExtents + 1);
    Offset first = 0, last = 0;
    written_.clear();
    for (std::span<const TermId> rest = words; first == 0 || !rest.empty();) {
        const auto piece = rest.first(std::min(rest.size(), most));
        rest = rest.subspan(piece.size());
        const std::uint64_t before = first == 0 ? sizeof(Rewritten) : 0,
                            capacity = std::max<std::size_t>(piece.size(), 1);
        const Offset offset = region_.allocate(before + ListExtent::bytes(capacity)) + before;
        written_.push_back({offset - before, offset + ListExtent::bytes(capacity)});
        auto& extent = region_.at<ListExtent>(offset);
        extent.capacity = static_cast<std::uint32_t>(capacity);
        extent.sorted = static_cast<std::uint32_t>(std::min(piece.size(), ascending));
        ascending -= extent.sorted;
        extent.next = 0;
        extent.values()[0] = kUnbound;
        std::copy(piece.begin(), piece.end(), extent.values());
        if (first != 0)
            region_.at<ListExtent>(last).next = offset;
        else
            region_.at<Rewritten>((first = offset) - sizeof(Rewritten)) = rewritten;
        last = offset;
    }
    return first;
}

void Shard::rewrite(const Garbage& list) {
    auto& entry = region_.at<Entry>(list.entry);
    const std::uint64_t state = entry.state;
    const TermId head = entry.head;
    const std::uint32_t length = layout::length_of(state);
    const std::vector<TermId> values = sorted_values_of(head, length);
    const auto count = static_cast<std::uint32_t>(values.size());

    const Offset first = write_extents(values, values.size(), {state, count, 0});
    region_.keep();
    // A list without values goes on to be treated as one with removals, because its vertex is not in the index list. An
    // index list does, because views that exclude commits must check its vertices (StoreView::vertices).
    const bool keeps_mark = count == 0 || list.vertex == kUnbound;
    const std::uint64_t shorter = layout::make_state(layout::last_of(state), count);
    // Head before state: a reader that loads the old state and the new head finds the old state before the extent.
    layout::store_release(entry.head, layout::rewritten_head(first));
    layout::store_release(entry.state, keeps_mark ? shorter | layout::kHasRemovals : shorter);

    if (count <= 1) {
        short_.push_back({list.entry, history_.latest() + 1});
        short_since_[list.entry] = short_.back().since;
    } else {
        short_since_.erase(list.entry);
    }
    retire_extents(head, length);
    lists_.forget(list.entry);
    changed_.forget(list.entry);
    if (list.vertex == kUnbound) return removal_counts_.set(list.label, list.dir, 0);
    if (count > 0) return;
    const std::size_t part = layout::Table::part(layout::record_hash(header().seed, list.vertex, list.dir));
    if (++emptied_[part] >= kFewEmptied && 8 * emptied_[part] >= table_.slots(part)) drop_dead(part);
}

/// Rewrites a list that was chosen, and appends words of the running commit to it. Returns false if nothing was done.
bool Shard::rewrite_in_commit(Offset entry, std::span<const TermId> appended) {
    const auto found = chosen_.find(entry);
    if (found == chosen_.end() || std::exchange(found->second.tried, true)) return false;
    const Entry& old = region_.at<Entry>(entry);
    const RewrittenList made = rewrite_prefix(region_, old.head, layout::length_of(old.state),
                                              history_.settled_words(number_, entry, old.state), appended);
    if (made.shift == 0 || made.words.size() >= kAbsent) return false;
    // The commit's own words come first: they must still fit in.
    if (ListExtent::bytes(made.words.size()) > region_.room() / 2) return false;
    try {
        write_rewritten(found->second.list, made, static_cast<std::uint32_t>(appended.size()));
    } catch (const LimitError&) {  // no span is large enough: the commit only appends
        unused_.insert(unused_.end(), written_.begin(), written_.end());
        return false;
    }
    return true;
}

void Shard::write_rewritten(const Garbage& list, const RewrittenList& made, std::uint32_t appended) {
    auto& entry = region_.at<Entry>(list.entry);
    const std::uint32_t old_length = layout::length_of(entry.state), before = old_length - made.shift,
                        length = before + appended;
    const Offset first = write_extents(made.words, made.ascending, {entry.state, before, snapshot_});
    // As in rewrite().
    const bool keeps_mark = made.has_words || made.values() == 0 || list.vertex == kUnbound;
    const std::uint64_t state = layout::make_state(snapshot_, length);
    publication_.store(entry.head, layout::rewritten_head(first));
    publication_.store(entry.state, keeps_mark ? state | layout::kHasRemovals : state);
    appends_.push_back({list.entry, before, appended, layout::last_of(entry.state), made.shift});

    std::uint32_t removals = 0;
    for (const TermId word : std::span(made.words).first(before))
        removals += layout::Removal::is(word) && !layout::Removal::restores(word);
    rewritings_[list.entry] = {entry.head,
                               old_length,
                               made.prefix,
                               made.shift,
                               removals,
                               length,
                               length > made.values() && is_worth(length, made.values()),
                               is_much(length, made.values())};
}

/// Rewrites the chosen lists that the commit does not change otherwise.
void Shard::rewrite_chosen() {
    for (const auto& [entry, chosen] : chosen_) rewrite_in_commit(entry, {});
    if (!rewritings_.empty()) publication_.store(region_.header().rewritten, snapshot_);
}

/// The log of a commit has the positions of the lists that it has rewritten. Words of a prefix need no reassertion,
/// because all readers see them.
void Shard::translate_reassertions() {
    std::erase_if(reassertions_, [this](Reassertion& again) {
        const auto found = rewritings_.find(again.entry);
        if (found == rewritings_.end()) return false;
        const bool is_seen = again.position < found->second.prefix;
        again.position -= found->second.shift;
        return is_seen;
    });
}

/// After the words of the commit are stored: frees the old extents of rewritten lists, and queues chosen lists again
/// that still have removed values.
void Shard::finish_rewriting() {
    for (const Span& span : unused_) table_.retire(span, snapshot_);
    for (auto& [entry, chosen] : chosen_) {
        Garbage& list = chosen.list;
        list.since = snapshot_;
        const auto found = rewritings_.find(entry);
        if (found == rewritings_.end()) {
            queue(list);
            continue;
        }
        const Rewriting& made = found->second;
        retire_extents(made.old_head, made.old_length);
        lists_.forget(entry);
        changed_.forget(entry);
        if (list.vertex == kUnbound) removal_counts_.set(list.label, list.dir, made.removals);
        list.many = made.many;
        if (made.remains) queue(list);
        short_since_.erase(entry);
        if (made.length > 1) continue;
        short_.push_back({entry, snapshot_});
        short_since_[entry] = snapshot_;
    }
}

/// Queues the extents of a list for reuse once no view of this moment is left.
void Shard::retire_extents(TermId head, std::uint32_t length) {
    if (!layout::is_extent(head)) return;
    std::uint64_t before = layout::is_rewritten(head) ? sizeof(Rewritten) : 0;  // the first extent
    lookup::for_each_extent(region_, lookup::first_extent(head), length,
                            [&](const ListExtent& extent, lookup::ExtentAt place) {
                                const Offset end = place.offset + ListExtent::bytes(extent.capacity);
                                table_.retire({place.offset - std::exchange(before, 0), end}, history_.latest() + 1);
                                return false;
                            });
}

/// Whether the slot's record has no edges, in the eyes of any reader. Wide records stay, because each of their labels
/// has a slot too.
bool Shard::is_dead(const Slot& slot) const {
    if (Ref::is_label(slot.ref)) return false;
    std::uint32_t start = 0;
    for (Offset piece = Ref::offset(slot.ref); piece != 0;) {
        if (start >= Directory::kScannedLabels) return false;
        const std::uint64_t state = region_.word(piece);
        const std::uint32_t capacity = Directory::capacity_of(state);
        for (std::uint32_t i = 0; i < Directory::count_of(state); ++i)
            if (layout::length_of(region_.at<Entry>(Directory::entry_at(piece, capacity, i)).state) != 0) return false;
        start += capacity;
        piece = Directory::next_of(state);
    }
    return true;
}

/// Rebuilds a part of the table without the vertices that have no edges, and frees their records.
void Shard::drop_dead(std::size_t part) {
    std::vector<Offset> records;
    const auto dead = [&](const Slot& slot) { return is_dead(slot); };
    table_.for_each_slot(part, [&](const Slot& slot) {
        if (is_dead(slot)) records.push_back(Ref::offset(slot.ref));
    });
    emptied_[part] = 0;
    if (records.empty()) return;
    table_.drop(part, dead, history_.latest() + 1);
    for (const Offset record : records) retire_record(record);
}

void Shard::retire_record(Offset record) {
    for (Offset piece = record; piece != 0;) {
        const std::uint64_t state = region_.word(piece);
        const std::uint32_t capacity = Directory::capacity_of(state);
        for (std::uint32_t i = 0; i < Directory::count_of(state); ++i) {
            const Offset entry = Directory::entry_at(piece, capacity, i);
            retire_extents(region_.at<Entry>(entry).head, 0);
            short_since_.erase(entry);
            lists_.forget(entry);
            changed_.forget(entry);
        }
        table_.retire({piece, piece + Directory::bytes(capacity)}, history_.latest() + 1);
        piece = Directory::next_of(state);
    }
}

}  // namespace penstock
