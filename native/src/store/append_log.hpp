// What one commit appended to one shard, per list: the "offset at which the first newer slice appended to that key"
// from which a reader of an older snapshot finds the length it may see (DESIGN §4, bounded scalarization; Wukong+S §4.3
// keeps two snapshots in every key instead).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/layout.hpp"

namespace penstock {

using layout::Append;
using layout::Reassertion;

/// Immutable.
class AppendLog {
public:
    AppendLog() = default;
    /// Each entry at most once in `appends`; every entry of `reasserted` must be among them (with count 0 if need be).
    AppendLog(std::span<const Append> appends, std::vector<Reassertion> reasserted);

    const Append* find(layout::Offset entry) const;
    /// Where the search for an entry begins among that many slots.
    static std::uint64_t first_slot(layout::Offset entry, std::uint64_t slots) {
        return layout::reduce(mix(entry), slots);
    }
    std::span<const Reassertion> reasserted(layout::Offset entry) const;

    std::size_t bytes() const {
        return slots_.capacity() * sizeof(Append) + reasserted_.capacity() * sizeof(Reassertion);
    }
    std::vector<Append> appends() const;
    std::span<const Append> slots() const { return slots_; }
    const std::vector<Reassertion>& reassertions() const { return reasserted_; }

private:
    std::vector<Append> slots_;            // open addressing, linear probing; entry 0 = empty
    std::vector<Reassertion> reasserted_;  // sorted
};

}  // namespace penstock
