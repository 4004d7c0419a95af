// A cache of lists that an engine has read from other nodes. An entry never becomes invalid for the snapshots up to its
// `as_of`. For later snapshots, the entry possibly lacks values, or the list was possibly rewritten (docs/adr/0105).
// RemoteView::continues() checks this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "store/layout.hpp"

namespace penstock::remote {

/// Identifies a list. Regions of different shards or incarnations have different epochs. Vertex 0: the shard's list of
/// the vertices that have the label.
struct ListKey {
    std::uint64_t epoch = 0;
    TermId vertex = 0;
    Label label = 0;
    Dir dir = Dir::Out;
    bool operator==(const ListKey&) const = default;
};

/// An extent of a list, and the list position of its first value.
struct KnownExtent {
    layout::Offset offset;
    std::uint32_t first, capacity, sorted;
};

/// A list that was read once. Immutable except for `as_of`.
struct KnownList {
    ListKey key;
    std::uint64_t hash = 0;
    layout::Offset entry = 0;  // 0: the list did not exist
    std::uint64_t state = 0;   // layout::Entry, as the head; of visible values: without removals
    TermId head = 0;
    std::uint64_t read_state = 0;  // as in the region; differs from `state` if these are visible values
    std::span<const TermId> values;
    std::span<const KnownExtent> extents;  // ascending; empty if the value was in the entry itself
    // The list had this state at all snapshots from the snapshot in `state` up to and including `as_of`. `as_of` only
    // grows. Relaxed, because a reader that loads an older value only reads the state again.
    mutable std::atomic<Snapshot> as_of{0};

    std::uint32_t length() const { return static_cast<std::uint32_t>(values.size()); }
    /// Whether the cache contains only the visible values. For a list with removals, the cache contains the values that
    /// a view of all commits of the list sees. These values have no positions.
    bool is_visible_part() const { return state != read_state; }
    void confirm(Snapshot snapshot) const;
    /// Position of a value in the list; lookup::kAbsent if it is not there.
    std::uint32_t find(TermId value) const;
};

/// Bounded: evicts the least recently used lists. Thread-safe.
class KnownLists {
public:
    /// The cache has two generations, each with half of the bytes. Recently used lists are in the young generation.
    /// When the young generation is full, it becomes the old generation, and the previous old generation is discarded.
    /// Lists longer than an eighth of a generation are not cached.
    explicit KnownLists(std::size_t max_bytes) : half_bytes_(max_bytes / 2) {}

    class Generation;
    /// Shares ownership of the lists that find() has returned, during its lifetime.
    using Hold = std::vector<std::shared_ptr<const Generation>>;
    /// found[i] is the cached list of keys[i], or nullptr.
    void find(std::span<const ListKey> keys, std::span<const KnownList*> found, Hold& hold);

    /// The result of reading a list. The other properties of the list follow from the key.
    struct Reading {
        ListKey key;
        layout::Offset entry = 0;
        std::uint64_t state = 0;
        TermId head = 0;
        std::uint64_t read_state = 0;
        Snapshot as_of = 0;
        std::span<const TermId> values;
        std::span<const KnownExtent> extents;
    };
    void put(std::span<const Reading> readings);

    std::size_t bytes() const;

private:
    const KnownList* put(const Reading& reading, std::uint64_t hash);

    const std::size_t half_bytes_;
    mutable std::mutex mutex_;  // guards the members below; held for look-ups only, never during reads
    std::shared_ptr<Generation> young_, old_;
};

}  // namespace penstock::remote
