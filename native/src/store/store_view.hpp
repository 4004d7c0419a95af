// The stored graph at one snapshot, for one evaluation.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "changing_source.hpp"
#include "store/change_log.hpp"
#include "store/history.hpp"
#include "store/past_lists.hpp"
#include "store/shard.hpp"
#include "store/sharding.hpp"
#include "store/visibility.hpp"

namespace penstock {

/// Reads without locks, from any number of threads. Holds its lease until its destruction. If some shards are not
/// local, it is a view of a part of the graph. Look-ups of vertices of local shards then succeed, and all other
/// look-ups throw DataError.
class StoreView final : public SnapshotSource {
public:
    using Shards = std::span<const Shard* const>;  // by number; nullptr: not local

    /// `visibility` is a lease of `history`; the destructor releases it. `log`: nullptr for a view that cannot be
    /// retained. `past`: nullptr unless the view is a view of the past.
    StoreView(Shards shards, CommitHistory& history, Visibility visibility, ChangeLog* log = nullptr,
              PastLists* past = nullptr)
        : shards_(shards),
          part_(std::find(shards.begin(), shards.end(), nullptr) != shards.end()),
          history_(history),
          visibility_(std::move(visibility)),
          log_(log),
          past_(past) {}
    ~StoreView() override { history_.unlease(visibility_); }
    StoreView(const StoreView&) = delete;
    StoreView& operator=(const StoreView&) = delete;

    Snapshot snapshot() const { return visibility_.snapshot; }

    void expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const override;
    void contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                  std::span<std::uint8_t> found) const override;
    void vertices(Label label, Dir dir, std::vector<TermId>& out) const override;
    void labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                   std::vector<Label>& labels) const override;
    void edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const override;
    void labels(std::vector<Label>& out) const override;
    bool has_edges(Label label) const override;    // of a part: whether a local vertex has out-edges
    LabelStats stats(Label label) const override;  // of the latest snapshot; for the planner
    std::uint64_t degree(TermId vertex, Label label, Dir dir) const override;
    std::shared_ptr<Retained> retain() const override;
    bool changes_since(const Source& before, std::span<const Label> labels, std::size_t limit,
                       EdgeChanges& out) const override;

private:
    static constexpr std::size_t kGroup = 16;  // keys whose cache misses overlap

    /// A list that this view has found. If `whole`, all positions [0, length) are visible values. Otherwise,
    /// ranges_of() returns the positions of the visible values. An absent list is whole and empty. There are no member
    /// initialisers, because every call creates arrays of this type.
    struct List {
        const Shard* shard;
        layout::Offset entry;
        TermId head;
        std::uint64_t state;
        std::uint32_t length;
        bool whole;
    };
    using Ranges = std::vector<PositionRange>;

    const Shard& shard_for(TermId vertex) const { return *shards_[shard_number(vertex, shards_.size())]; }
    bool here(TermId vertex) const { return shards_[shard_number(vertex, shards_.size())] != nullptr; }
    /// Whether all vertices belong to local shards. A view of the whole graph does not check.
    bool all_here(std::span<const TermId> vertices) const;
    void check_here(std::span<const TermId> vertices) const;
    void check_whole() const;
    void contains_in_part(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                          std::span<std::uint8_t> found) const;
    void find_records(std::span<const TermId> keys, Dir dir, layout::Offset* records) const;
    void find_lists(std::span<const TermId> keys, Label label, Dir dir, List* lists) const;
    List find_list(TermId vertex, Label label, Dir dir) const;
    List load(const Shard& shard, layout::Offset entry) const;
    [[gnu::noinline, gnu::cold]] void load_changed(List& list) const;
    /// The visible positions of a list that is not whole, ascending and disjoint.
    std::uint32_t ranges_of(const List& list, Ranges& ranges) const;
    bool visible(const List& list) const;
    std::uint64_t visible_length(const List& list) const;
    bool list_contains(const List& list, TermId value) const;
    std::span<const TermId> sorted_values(const List& list) const;
    void contains_from(std::span<const TermId> from, Label label, Dir dir, std::span<const TermId> to,
                       std::span<std::uint8_t> found) const;
    /// Whether a search reads few cache lines. This is the case if the list is short. It is also the case if the list
    /// is not very long, and all values but a few are sorted.
    bool quickly_searched(const List& list) const;
    /// `list` is the list of `vertex` in direction `dir`.
    bool has_edge(const List& list, TermId vertex, Label label, Dir dir, TermId neighbour) const;
    void contains_in_old(const List& list, TermId vertex, Label label, Dir dir, std::span<const TermId> to,
                         std::span<std::uint8_t> found) const;
    void append_vertices(const Shard& shard, Label label, Dir dir, std::vector<TermId>& out) const;
    void append_checked_vertices(const List& index, Label label, Dir dir, std::vector<TermId>& out) const;
    bool may_have_edges(Label label) const;
    bool has_removals(Label label) const;
    template <class Visit>
    void for_each_visible(const List& list, Visit visit) const;
    void append_hidden_vertices(const List& index, const Ranges& visible, Label label, Dir dir,
                                std::vector<TermId>& out) const;

    Shards shards_;
    bool part_;
    CommitHistory& history_;
    Visibility visibility_;
    ChangeLog* log_;
    PastLists* past_;
};

}  // namespace penstock
