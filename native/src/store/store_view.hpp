// The stored graph at one snapshot, for one evaluation.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "store/history.hpp"
#include "store/shard.hpp"
#include "store/sharding.hpp"
#include "store/visibility.hpp"

namespace penstock {

/// Reads without locks, from any number of threads. Holds its lease until it is destroyed.
class StoreView final : public Source {
public:
    using Shards = std::vector<std::unique_ptr<Shard>>;

    StoreView(const Shards& shards, CommitHistory& history, std::span<const StreamBound> bounds)
        : shards_(shards), history_(history), visibility_(history.lease(bounds)) {}
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
    LabelStats stats(Label label) const override;  // of the latest snapshot: for the planner
    std::uint64_t degree(TermId vertex, Label label, Dir dir) const override;

private:
    static constexpr std::size_t kGroup = 16;  // keys whose cache misses overlap

    /// One list as this view found it. `whole`: positions [0, length) are visible; else ranges_of tells. An absent list
    /// is whole and empty. Without initialisers: arrays of these are made on every call.
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
    void find_records(std::span<const TermId> keys, Dir dir, layout::Offset* records) const;
    void find_lists(std::span<const TermId> keys, Label label, Dir dir, List* lists) const;
    List find_list(TermId vertex, Label label, Dir dir) const;
    List load(const Shard& shard, layout::Offset entry) const;
    /// Visible positions of a list that is not whole, ascending and disjoint.
    std::uint32_t ranges_of(const List& list, Ranges& ranges) const;
    bool visible(const List& list) const;
    std::uint64_t visible_length(const List& list) const;
    bool list_contains(const List& list, TermId value) const;
    void contains_from(std::span<const TermId> from, Label label, Dir dir, std::span<const TermId> to,
                       std::span<std::uint8_t> found) const;
    /// A test reads a few cache lines: the list is short, or sorted but for a few values and not very long.
    bool quickly_searched(const List& list) const;
    /// `list` is the vertex's in that direction.
    bool has_edge(const List& list, TermId vertex, Label label, Dir dir, TermId neighbour) const;
    template <class Visit>
    void for_each_visible(const List& list, Visit visit) const;
    void append_hidden_vertices(const List& index, const Ranges& visible, Label label, Dir dir,
                                std::vector<TermId>& out) const;

    const Shards& shards_;
    CommitHistory& history_;
    Visibility visibility_;
};

}  // namespace penstock
