// The writer's side of the key table: slots are claimed in the preparation of a commit, and visible once published.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "store/layout.hpp"
#include "store/publication.hpp"
#include "store/region.hpp"

namespace penstock {

struct PendingSlot {
    std::uint64_t hash;
    TermId key;
    std::uint64_t ref;
    layout::Slot* slot = nullptr;  // set when claimed
};

/// Growth builds a larger generation of one part of the table, in addition to the old generation. Records do not move.
/// Slots never change. Each slot that the old generation lacks is newer than the snapshot of any reader that still uses
/// the old generation. The old generation therefore needs no updates. It is freed when no lease is older than the new
/// generation.
class TableWriter {
public:
    explicit TableWriter(Region& region);

    /// Claims a slot for each element, in a larger generation if necessary. LimitError if the region is full. In this
    /// case, no slot is claimed.
    void claim(std::span<PendingSlot> slots, Snapshot snapshot);
    void publish(std::span<PendingSlot> slots, Publication& publication) const;
    void unclaim(std::span<PendingSlot> slots);

    /// Frees generations that no reader at `oldest_reader` or later can use.
    void collect(Snapshot oldest_reader);
    /// Queues a generation (or another block) for collect(). No earlier block may have a later `since`.
    void retire(Span block, Snapshot since) { retired_.push_back({block, since}); }
    std::vector<Span> retired() const;
    /// Replaces a part's generation by one without the slots for which dead(slot) is true. LimitError.
    void drop(std::size_t part, const std::function<bool(const layout::Slot&)>& dead, Snapshot since);
    /// Visits the published slots of a part.
    template <class Visit>
    void for_each_slot(std::size_t part, Visit visit) const {
        const layout::Offset table = current(part);
        const std::uint64_t buckets = region_.at<layout::Table>(table).buckets;
        for (std::uint64_t i = 0; i < buckets; ++i)
            for (layout::Offset at = layout::Table::bucket_at(table, i); at != 0;
                 at = region_.at<layout::Bucket>(at).overflow)
                for (const layout::Slot& slot : region_.at<layout::Bucket>(at).slots)
                    if (slot.key != 0) visit(slot);
    }
    std::uint64_t slots(std::size_t part) const { return header_of(part).slots; }

private:
    struct Retired {
        Span block;
        Snapshot since;
    };
    using Slots = std::span<PendingSlot>;

    layout::Slot* claim_slot(layout::Offset table, std::uint64_t hash);
    void make_room(Slots slots, Snapshot snapshot);
    void claim_again(Slots slots, std::size_t part, Snapshot snapshot);
    layout::Offset make_table(std::uint64_t slots);
    void grow(std::size_t part, std::uint64_t slots, Snapshot snapshot);
    bool copy(layout::Offset from, layout::Offset to, const std::function<bool(const layout::Slot&)>& dead);
    void replace(std::size_t part, std::uint64_t slots, Snapshot since,
                 const std::function<bool(const layout::Slot&)>& dead);
    std::uint64_t hash_of(const layout::Slot& slot) const;
    layout::Offset current(std::size_t part) const { return layout::Table::offset_of(region_.header().tables[part]); }
    std::uint64_t word_of(layout::Offset table) const {
        return layout::Table::make_word(table, region_.at<layout::Table>(table).buckets);
    }
    layout::Table& header_of(std::size_t part) const { return region_.at<layout::Table>(current(part)); }
    Span block_of(layout::Offset table) const;

    Region& region_;
    std::deque<Retired> retired_;  // `since` ascends
};

}  // namespace penstock
