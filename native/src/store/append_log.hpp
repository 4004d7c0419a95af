// What one commit appended to one shard, per list: the "offset at which the first newer slice appended to that key"
// from which a reader of an older snapshot finds the length it may see (ADR 3, bounded scalarization; Wukong+S §4.3
// keeps two snapshots in every key instead).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "store/layout.hpp"

namespace penstock {

using layout::Append;
using layout::Reassertion;

/// Immutable, but for a hash by entry that is made when the first reader looks for one: most logs are given up before,
/// as no reader was behind.
class AppendLog {
public:
    AppendLog() = default;
    /// Each entry at most once in `appends`; every entry of `reasserted` must be among them (with count 0 if need be).
    AppendLog(std::vector<Append> appends, std::vector<Reassertion> reasserted);

    // Any thread.
    const Append* find(layout::Offset entry) const;
    /// Where the search for an entry begins among that many slots.
    static std::uint64_t first_slot(layout::Offset entry, std::uint64_t slots) {
        return layout::reduce(mix(entry), slots);
    }
    std::span<const Reassertion> reasserted(layout::Offset entry) const;

    /// With the hash, whether or not it was made.
    std::size_t bytes() const;
    const std::vector<Append>& appends() const { return appends_; }
    /// The hash: open addressing, linear probing; entry 0 = empty.
    std::span<const Append> slots() const;
    const std::vector<Reassertion>& reassertions() const { return reasserted_; }

private:
    /// Whoever needs it first makes it; the flag orders that before what others read of it.
    struct Hash {
        std::once_flag made;
        std::vector<Append> slots;
    };
    static std::size_t slots_for(std::size_t appends) { return appends == 0 ? 0 : appends + appends / 2 + 1; }
    std::vector<Append> make_slots() const;

    std::vector<Append> appends_;
    std::unique_ptr<Hash> hash_ = std::make_unique<Hash>();
    std::vector<Reassertion> reasserted_;  // sorted
};

}  // namespace penstock
