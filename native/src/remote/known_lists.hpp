// Lists that an engine has read from other nodes, kept. Nothing of them is ever out of date: positions that a list had
// at some snapshot keep their values for ever, so what is kept is short of what came later at most (ADR 3: "a
// published byte never changes").
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

/// Names a list: regions of two incarnations, or of two shards, have different epochs. Vertex 0: the shard's list of
/// the vertices that have the label.
struct ListKey {
    std::uint64_t epoch = 0;
    TermId vertex = 0;
    Label label = 0;
    Dir dir = Dir::Out;
    bool operator==(const ListKey&) const = default;
};

/// An extent of a list, and the position of its first value there.
struct KnownExtent {
    layout::Offset offset;
    std::uint32_t first, capacity, sorted;
};

/// A list as it was read once. All but `as_of` is immutable.
struct KnownList {
    ListKey key;
    std::uint64_t hash = 0;
    layout::Offset entry = 0;  // 0: there was no such list
    std::uint64_t state = 0;   // layout::Entry
    std::span<const TermId> values;
    std::span<const KnownExtent> extents;  // ascending; none where the value lay in the entry
    // It had this state at all snapshots from the one in its state up to this one, which only grows. Relaxed: who
    // misses the newest one reads the state anew.
    mutable std::atomic<Snapshot> as_of{0};

    std::uint32_t length() const { return static_cast<std::uint32_t>(values.size()); }
    void confirm(Snapshot snapshot) const;
    /// Position of a value in it; lookup::kAbsent where it is not.
    std::uint32_t find(TermId value) const;
};

/// Bounded: what was used longest ago is forgotten. Any thread.
class KnownLists {
public:
    /// Half of the bytes are for what was used lately; when they are taken, they become the other half, and what was in
    /// that is forgotten. Longer lists than an eighth of it are not kept.
    explicit KnownLists(std::size_t max_bytes) : half_bytes_(max_bytes / 2) {}

    class Generation;
    /// Keeps what find() gave while it lives.
    using Hold = std::vector<std::shared_ptr<const Generation>>;
    /// found[i] is what is known of keys[i], or nullptr.
    void find(std::span<const ListKey> keys, std::span<const KnownList*> found, Hold& hold);

    /// What was read of a list; the rest of it follows from the key.
    struct Reading {
        ListKey key;
        layout::Offset entry = 0;
        std::uint64_t state = 0;
        Snapshot as_of = 0;
        std::span<const TermId> values;
        std::span<const KnownExtent> extents;
    };
    void put(std::span<const Reading> readings);

    std::size_t bytes() const;

private:
    const KnownList* put(const Reading& reading, std::uint64_t hash);

    const std::size_t half_bytes_;
    mutable std::mutex mutex_;  // the rest; held for look-ups alone, never while something is read
    std::shared_ptr<Generation> young_, old_;
};

}  // namespace penstock::remote
