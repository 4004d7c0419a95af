// What one commit appended to one shard, per list. A reader of an older snapshot finds here the offset at which the
// first newer commit appended to a list. This offset is the length of the list in the older snapshot (ADR 3, bounded
// scalarization). Wukong+S §4.3 instead stores two snapshots in every key.
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

/// Immutable, except for a hash by entry that is built on the first look-up. Most logs are discarded without a look-up,
/// because no reader needs an older snapshot.
class AppendLog {
public:
    AppendLog() = default;
    /// Each entry occurs at most once in `appends`. Every entry of `reasserted` also occurs in `appends`, with count 0
    /// if the commit appended nothing to its list.
    AppendLog(std::vector<Append> appends, std::vector<Reassertion> reasserted);

    // Thread-safe.
    const Append* find(layout::Offset entry) const;
    /// The slot at which the search for an entry starts, in a hash of `slots` slots.
    static std::uint64_t first_slot(layout::Offset entry, std::uint64_t slots) {
        return layout::reduce(mix(entry), slots);
    }
    std::span<const Reassertion> reasserted(layout::Offset entry) const;

    /// Includes the hash, whether or not it is built.
    std::size_t bytes() const;
    const std::vector<Append>& appends() const { return appends_; }
    /// The hash: open addressing, linear probing; entry 0 = empty.
    std::span<const Append> slots() const;
    const std::vector<Reassertion>& reassertions() const { return reasserted_; }

private:
    /// Built by the first thread that needs it. The once-flag orders the construction before every later read.
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
