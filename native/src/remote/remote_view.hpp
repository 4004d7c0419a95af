// The stored graph at one snapshot, over shards on other nodes or in other processes of this machine.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "remote/known_lists.hpp"
#include "remote/operation.hpp"
#include "remote/remote_store.hpp"
#include "remote/shard_memory.hpp"
#include "source.hpp"
#include "store/lookup.hpp"
#include "store/visibility.hpp"

namespace penstock::remote {

/// Each call reads in rounds that cover all keys and shards: buckets, then records, then lists. For a cached list, it
/// reads only whether the list has grown, and the new values. Not thread-safe. For errors, see RemoteStore::view.
class RemoteView final : public Source {
public:
    RemoteView(RemoteStore& store, std::shared_ptr<const RemoteStore::Places> places, Snapshot snapshot)
        : store_(store), places_(std::move(places)), snapshot_(snapshot), leased_(snapshot) {}
    ~RemoteView() override { store_.closed(leased_); }
    RemoteView(const RemoteView&) = delete;
    RemoteView& operator=(const RemoteView&) = delete;
    void add(ShardImage image) { images_.push_back(std::move(image)); }
    void see(Visibility visibility) {
        visibility_ = std::move(visibility);
        store_.began(visibility_.first_excluded - 1);
        store_.closed(std::exchange(leased_, visibility_.first_excluded - 1));
    }

    Snapshot snapshot() const { return snapshot_; }
    const std::vector<Snapshot>& excluded() const { return visibility_.excluded; }

    void expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const override;
    void contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                  std::span<std::uint8_t> found) const override;
    void vertices(Label label, Dir dir, std::vector<TermId>& out) const override;
    void labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                   std::vector<Label>& labels) const override;
    void edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const override;
    void labels(std::vector<Label>& out) const override;
    LabelStats stats(Label label) const override;          // of the latest snapshot; for the planner
    std::uint64_t edge_count(Label label) const override;  // may be RemoteStore::kCountsAge old
    std::uint64_t degree(TermId vertex, Label label, Dir dir) const override;

private:
    using ExtentAt = lookup::ExtentAt;
    /// A list that the view has to find. It is the list of a vertex or, if the vertex is kUnbound, the shard's list of
    /// vertices in the given entry.
    struct Sought {
        std::uint32_t shard;
        TermId vertex;
        layout::Offset entry;
        bool is_nothing() const { return vertex == kUnbound && entry == 0; }
    };
    /// A list that this view has found, as in StoreView::List. An absent list has no entry and the length 0. `known`:
    /// the cached first values and their extents. `head` has a meaning only if the list has further values.
    struct List {
        std::uint32_t shard = 0;
        layout::Offset entry = 0;
        TermId head = 0;
        std::uint64_t state = 0;
        const KnownList* known = nullptr;
        ListVersion version = {};      // unless whole
        std::uint64_t read_state = 0;  // before settle()
        std::uint32_t length() const { return layout::length_of(state); }
    };
    using Ranges = std::vector<PositionRange>;

    /// Whether the view sees all commits of a list with this state, and no vertex has to be checked (see checked()).
    bool sees_all(std::uint64_t state) const {
        return visibility_.excluded.empty() && layout::last_of(state) <= snapshot_;
    }
    bool whole(const List& list) const { return layout::whole_before(list.state, visibility_.first_excluded); }
    /// Whether the list of each vertex of this index list must be checked. The reason is that the view can exclude the
    /// commit that added an edge, and include a commit that removed all other edges.
    bool checked(const List& index) const { return layout::has_removals(index.state) && !visibility_.excluded.empty(); }
    bool at_hand(const List& list) const;
    std::uint32_t shard_of(TermId vertex) const;
    Snapshot as_of(std::uint32_t shard) const;
    ShardMemory memory(Operation& operation, std::uint32_t shard) const;
    layout::Offset find_record(Operation& operation, TermId vertex, Dir dir) const;
    layout::Offset find_entry(Operation& operation, TermId vertex, Label label, Dir dir) const;
    List load(Operation& operation, std::uint32_t shard, layout::Offset entry) const;
    void settle(Operation& operation, List& list) const;
    bool continues(const KnownList& known, std::uint32_t shard, const layout::Entry& now) const;
    bool is_current(const KnownList& known) const;
    layout::Offset label_row(std::uint32_t shard, Label label) const;

    std::vector<Sought> sought(std::span<const TermId> keys) const;
    std::vector<Sought> index_lists(Label label, Dir dir) const;
    List walk_to(Operation& operation, const Sought& sought, Label label, Dir dir) const;
    std::vector<const KnownList*> known_lists(Operation& operation, std::span<const Sought> sought,
                                              std::span<const std::uint32_t> of, Label label, Dir dir) const;
    std::vector<List> find_lists(Operation& operation, std::span<const Sought> sought, Label label, Dir dir) const;
    void read_values(Operation& operation, std::span<const List> lists) const;
    void cache_lists(Operation& operation, std::span<const Sought> sought, std::span<const List> lists, Label label,
                     Dir dir) const;
    void append_all(Operation& operation, const List& list, std::vector<TermId>& values,
                    std::vector<KnownExtent>& extents) const;
    void append_visible(Operation& operation, const List& list, std::vector<TermId>& values,
                        std::vector<KnownExtent>& extents) const;

    template <class Visit>
    void for_each_unknown(const ShardMemory& memory, const List& list, std::uint32_t begin, std::uint32_t end,
                          Visit visit) const;
    template <class Visit>
    void for_each_position(const ShardMemory& memory, const List& list, std::uint32_t begin, std::uint32_t end,
                           Visit visit) const;
    template <class Visit>
    void for_each_visible(Operation& operation, const List& list, Visit visit) const;
    std::uint32_t ranges_of(Operation& operation, const List& list, Ranges& ranges) const;
    std::uint64_t visible_length(Operation& operation, const List& list) const;
    std::uint32_t find_value(const ShardMemory& memory, const List& list, TermId value) const;
    bool list_contains(Operation& operation, const List& list, std::optional<Ranges>& seen, TermId value) const;
    void hidden_vertices(Operation& operation, const List& index, Label label, Dir dir, std::vector<TermId>& out) const;

    RemoteStore& store_;
    std::shared_ptr<const RemoteStore::Places> places_;
    Snapshot snapshot_;
    Snapshot leased_;
    Visibility visibility_;
    std::vector<ShardImage> images_;  // by shard
};

}  // namespace penstock::remote
