// What one commit appended to one shard, per list: the "offset at which the first newer slice appended to that key"
// from which a reader of an older snapshot finds the length it may see (DESIGN §4, bounded scalarization; Wukong+S §4.3
// keeps two snapshots in every key instead).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/layout.hpp"

namespace penstock {

/// Positions [before, before + count) of that list are this commit's. `previous` is the snapshot that changed the list
/// before: following it from log to log visits exactly the commits that touched the list, newest first.
struct Append {
    layout::Offset entry = 0;
    std::uint32_t before = 0;
    std::uint32_t count = 0;
    Snapshot previous = 0;
};

/// The commit also had the value at this position, which a commit of another stream had stored before: who excludes
/// that stream's commit, but not this one, must see it all the same.
struct Reassertion {
    layout::Offset entry = 0;
    std::uint32_t position = 0;
    friend auto operator<=>(const Reassertion&, const Reassertion&) = default;
};

/// Immutable.
class AppendLog {
public:
    AppendLog() = default;
    /// Each entry at most once in `appends`; every entry of `reasserted` must be among them (with count 0 if need be).
    AppendLog(std::span<const Append> appends, std::vector<Reassertion> reasserted);

    const Append* find(layout::Offset entry) const;
    std::span<const Reassertion> reasserted(layout::Offset entry) const;

    std::size_t bytes() const {
        return slots_.capacity() * sizeof(Append) + reasserted_.capacity() * sizeof(Reassertion);
    }
    std::vector<Append> appends() const;
    const std::vector<Reassertion>& reassertions() const { return reasserted_; }

private:
    std::vector<Append> slots_;            // open addressing, linear probing; entry 0 = empty
    std::vector<Reassertion> reasserted_;  // sorted
};

}  // namespace penstock
