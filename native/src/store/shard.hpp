// One shard of the stored graph: look-ups in its region for readers of this process, and the writer of its commits.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/changed_lists.hpp"
#include "store/history.hpp"
#include "store/layout.hpp"
#include "store/list_rewriting.hpp"
#include "store/list_writer.hpp"
#include "store/log_ring.hpp"
#include "store/lookup.hpp"
#include "store/publication.hpp"
#include "store/region.hpp"
#include "store/removal_counts.hpp"
#include "store/table_writer.hpp"

namespace penstock {

/// An edge as seen from one of its two ends.
struct Keyed {
    TermId vertex;
    Label label;
    TermId value;
};

/// A list that has removed values. `vertex` is kUnbound for the index list of the label. `many`: whether the list has
/// so many removed values that their memory matters. The other lists are rewritten because look-ups in them are slow.
struct Garbage {
    layout::Offset entry;
    TermId vertex;
    Label label;
    Dir dir;
    bool many;
    Snapshot since = 0;  // the commit that has added to its garbage
};

/// Receives the ends of a commit that change the lists. If the members are nullptr, all ends must be changes.
struct Effects {
    std::vector<Keyed>* added = nullptr;
    std::vector<Keyed>* removed = nullptr;
    /// Ends that change nothing, but only because of a commit that a reader of the present commit can exclude.
    std::vector<Keyed>* repeated = nullptr;
};

/// Readers may use any thread. Commits go through StoreCommit, which enforces the order of a commit's steps.
class Shard {
public:
    Shard(Region region, const CommitHistory& history, std::uint32_t number);

    // -- reading, thread-safe
    const Region& region() const { return region_; }
    const layout::Header& header() const { return region_.header(); }
    /// The index of the shard among the local shards. It is also the index of the shard's log in a commit's record.
    std::uint32_t number() const { return number_; }
    layout::Offset bucket_of(TermId vertex, Dir dir) const {
        return lookup::current_bucket(region_, layout::record_hash(header().seed, vertex, dir));
    }
    layout::Offset find_record(TermId vertex, Dir dir) const {
        return lookup::find_record(region_, bucket_of(vertex, dir), vertex, dir);
    }
    /// Offset of the Entry for (vertex, label, direction); 0 if there is none.
    layout::Offset find_entry(layout::Offset record, TermId vertex, Label label, Dir dir) const {
        return lookup::find_entry(region_, record, vertex, label, dir);
    }
    /// Offset of the label's row; 0 if the shard has none yet.
    layout::Offset label_row(Label label) const;
    Label label_end() const;  // labels from this number on have no row
    std::uint64_t edge_count() const { return layout::load_acquire(header().edges); }
    /// The number of vertices with edges of the label. The label must have a row. As a statistic, the number is exact
    /// only between commits.
    std::uint64_t vertex_count(Label label, Dir dir) const;

    // -- writing, one thread
    /// Adds the log of a saved commit to a region that was loaded.
    void restore_log(Snapshot snapshot, const CommitSource& source, const AppendLog& log);
    void set_vts(std::uint32_t stream, std::int64_t batch);
    void retire() { region_.retire(); }
    std::uint64_t used_bytes() const { return region_.used_bytes(); }
    std::size_t index_bytes() const;
    std::vector<Garbage> garbage() const;  // lists that wait to be rewritten
    void restore_garbage(std::span<const Garbage> lists);
    /// The parts of the region's used bytes that the next incarnation may reuse, ascending. They do not touch.
    std::vector<Span> unused_spans() const;

private:
    friend class StoreCommit;

    // -- the steps of a commit, in this order: begin, append or change (out-edges, then in-edges), reassert, prepare,
    // make_log and publish_log; then publish, which cannot fail. abandon may replace any step after begin. Readers see
    // nothing of the commit before publish. With `rewrites` the commit also rewrites lists that have removed values.
    void begin(Snapshot snapshot, CommitSource source, bool rewrites);
    /// Adds the edges' ends of one direction, ascending by (vertex, label, value) without repetition. With `fresh`,
    /// ends that are already stored are skipped, and the new ends are also appended to `fresh`. `repeated` receives
    /// each stored end that only one commit contains, if a reader of the present commit can exclude that commit.
    /// Without `fresh`, all ends must be new.
    void append(Dir dir, std::span<const Keyed> ends, std::vector<Keyed>* fresh, std::vector<Keyed>* repeated);
    /// As append(), for a commit that removes edges too. No end is in both `added` and `removed`.
    void change(Dir dir, std::span<const Keyed> added, std::span<const Keyed> removed, const Effects& effects);
    /// Records that this commit asserts stored edges again, or removes removed ones (see Reassertion).
    void reassert(Dir dir, const Keyed& end);
    void prepare();
    AppendLog make_log();
    /// Puts the log of the running commit into the region. For a commit without a log, skip_log() is called after
    /// publication instead.
    void publish_log(const AppendLog& log) { logs_.add(snapshot_, source_, log); }
    void skip_log() { logs_.release_before(history_.floor()); }
    void publish();
    /// Called between commits. Rewrites lists that have many removed values, and frees the memory of the old lists.
    /// This is not possible if readers in other processes use the logs, because such a reader could combine an old list
    /// with a new state. In this case, commits rewrite lists.
    void compact();
    void abandon();
    void forget_commit();

    struct NewLabel {
        Label label;
        layout::Entry entry;
    };
    struct IndexItem {
        Label label;
        TermId vertex;
    };
    /// A vertex that has lost its last edge of a label, or got a first edge again.
    struct IndexTurn {
        Label label;
        TermId vertex;
        bool restores;
    };
    struct LabelChange {
        std::uint64_t added = 0, removed = 0;  // out-edges
    };
    /// All ends of one vertex in the commit.
    struct Run {
        std::span<const Keyed> ends;
        std::uint64_t hash = 0;
        layout::Offset bucket = 0;
        layout::Offset record = 0;
        layout::Offset entry = 0;  // of the first label
    };

    static constexpr std::size_t kGroup = 16;  // vertices whose look-ups overlap

    void prefetch_bucket(const Run& run) const;
    void find_lists(std::span<Run> runs, Dir dir);
    void append_vertex(Dir dir, const Run& run, std::vector<Keyed>* fresh, std::vector<Keyed>* repeated);
    void change_vertex(Dir dir, const Run& run, std::span<const Keyed> removed, const Effects& effects);
    void change_list(Dir dir, layout::Offset entry, std::span<const Keyed> added, std::span<const Keyed> removed,
                     const Effects& effects);
    bool may_be_hidden(layout::Offset entry, std::uint32_t position) const;
    LabelChange& label_change(Label label);
    std::size_t keep_new(layout::Offset entry, std::span<const Keyed> ends, std::vector<Keyed>* repeated);
    void extend_record(const Run& run, Dir dir);
    layout::Offset lay_out(TermId vertex, Dir dir, std::span<const NewLabel> labels, std::uint32_t start);
    void put_label(layout::Offset piece, std::uint32_t index, TermId vertex, Dir dir, std::uint32_t start,
                   const NewLabel& label);
    void append_list(layout::Offset entry, std::span<const TermId> values);
    void append_index(Dir dir);
    void count_removals();
    void queue_if_worth(Garbage list, std::uint64_t length, std::uint64_t values);
    void queue(const Garbage& list);
    bool may_rewrite(const Garbage& list) const;
    void choose_lists();
    bool choose_first(std::deque<layout::Offset>& lists);
    bool rewrite_in_commit(layout::Offset entry, std::span<const TermId> appended);
    void rewrite_chosen();
    void write_rewritten(const Garbage& list, const RewrittenList& made, std::uint32_t appended);
    void translate_reassertions();
    void finish_rewriting();
    std::vector<TermId> sorted_values_of(TermId head, std::uint32_t length) const;
    void rewrite(const Garbage& list);
    layout::Offset write_extents(std::span<const TermId> words, std::size_t ascending,
                                 const layout::Rewritten& rewritten);
    void shorten();
    void retire_extents(TermId head, std::uint32_t length);
    bool is_dead(const layout::Slot& slot) const;
    void drop_dead(std::size_t part);
    void retire_record(layout::Offset record);
    void change_index(Dir dir);
    void collect_index_words(layout::Offset entry, std::span<const IndexItem> items, std::span<const IndexTurn> turns);
    void change_index_of(Label label, Dir dir, std::span<const IndexItem> items, std::span<const IndexTurn> turns,
                         bool marks);
    layout::Offset make_label_row(Label label);

    Region region_;
    const CommitHistory& history_;
    std::uint32_t number_;
    Publication publication_;
    ListWriter lists_;
    ChangedLists changed_;
    RemovalCounts removal_counts_;
    bool has_removals_ = false;  // a commit has removed edges, or has tried to
    TableWriter table_;
    LogRing logs_;

    // Lists to rewrite
    std::unordered_map<layout::Offset, Garbage> garbage_;         // by entry
    std::deque<layout::Offset> many_, few_;                       // entries of these lists, and of rewritten lists
    std::array<std::uint64_t, layout::Table::kParts> emptied_{};  // lists emptied since the part was last rebuilt
    struct Short {
        layout::Offset entry;
        Snapshot since;
    };
    std::deque<Short> short_;                                   // rewritten lists with at most one value
    std::unordered_map<layout::Offset, Snapshot> short_since_;  // the last `since` of each entry in short_
    std::uint64_t budget_ = 0;                                  // words that can be rewritten now

    // Lists that the running commit rewrites, or has chosen to rewrite
    struct Chosen {
        Garbage list;
        bool tried = false;
    };
    struct Rewriting {
        TermId old_head;
        std::uint32_t old_length, prefix, shift;
        std::uint32_t removals;  // removal words that remove a value, without the words of the running commit
        std::uint32_t length;
        bool remains;  // whether removed values remain, so that another rewriting is worthwhile
        bool many;     // Garbage::many of the remaining values
    };
    bool rewrites_ = false;
    Snapshot floor_ = 1;  // of the history, when the commit began
    std::unordered_map<layout::Offset, Chosen> chosen_;
    std::unordered_map<layout::Offset, Rewriting> rewritings_;  // prepared rewritings, by entry
    std::vector<Span> written_;                                 // extents of the last rewriting
    std::vector<Span> unused_;                                  // extents that were written, but are not used

    // The running commit
    std::vector<Garbage> new_garbage_;
    Snapshot snapshot_ = 0;
    CommitSource source_;
    std::vector<TermId> values_;
    std::vector<NewLabel> new_labels_;
    std::vector<PendingSlot> slots_;
    std::vector<Append> appends_;
    std::vector<Reassertion> reassertions_;
    std::vector<IndexItem> index_[2];
    std::vector<LabelChange> label_edges_;  // by label
    std::vector<Label> touched_labels_;
    std::vector<IndexTurn> turns_[2];
    std::vector<Label> changed_labels_[2];  // labels of removed edges
    std::vector<TermId> index_values_;
    std::vector<std::uint32_t> index_ends_;  // by label, while append_index() sorts
};

}  // namespace penstock
