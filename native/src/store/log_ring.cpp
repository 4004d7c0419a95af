#include "store/log_ring.hpp"

#include <algorithm>
#include <bit>

namespace penstock {

using layout::CommitEntry;
using layout::CommitRing;
using layout::Offset;

namespace {

constexpr int kFirstRing = 6;  // logarithm of the first ring's capacity

Span ring_span(std::uint64_t word) {
    const Offset begin = word & ~std::uint64_t{127};
    return {begin, begin + CommitRing::capacity(word) * sizeof(CommitEntry)};
}

}  // namespace

Offset LogRing::write(const AppendLog& log, std::uint64_t bytes) {
    const Offset offset = region_.allocate(bytes);
    auto* slots = &region_.at<layout::Append>(offset);
    std::copy(log.slots().begin(), log.slots().end(), slots);
    std::copy(log.reassertions().begin(), log.reassertions().end(),
              reinterpret_cast<layout::Reassertion*>(slots + log.slots().size()));
    return offset;
}

/// Makes room for the snapshot's entry. An entry that is still readable must not be overwritten.
void LogRing::reserve(Snapshot snapshot) {
    const Snapshot oldest = published_.empty() ? snapshot : published_.front().snapshot;
    const std::uint64_t old = ring();
    int capacity_log = old == 0 ? kFirstRing : std::countr_zero(CommitRing::capacity(old));
    while (snapshot - oldest >= std::uint64_t{1} << capacity_log) ++capacity_log;
    if (old != 0 && CommitRing::capacity(old) == std::uint64_t{1} << capacity_log) return;
    const Offset block = region_.allocate_block(sizeof(CommitEntry) << capacity_log);
    const std::uint64_t larger = CommitRing::make(block, capacity_log);
    for (const Published& known : published_)
        region_.at<CommitEntry>(CommitRing::entry_at(larger, known.snapshot)) =
            region_.at<CommitEntry>(CommitRing::entry_at(old, known.snapshot));
    if (old != 0) outgrown_.push_back({snapshot, ring_span(old)});
    layout::store_release(region_.header().commits, larger);  // publishes the copied entries
}

void LogRing::add(Snapshot snapshot, const CommitSource& source, const AppendLog& log) {
    reserve(snapshot);
    const std::uint64_t slots = log.slots().size(), reasserted = log.reassertions().size();
    const std::uint64_t bytes = slots * sizeof(layout::Append) + reasserted * sizeof(layout::Reassertion);
    const Offset block = bytes == 0 ? 0 : write(log, bytes);
    region_.at<CommitEntry>(CommitRing::entry_at(ring(), snapshot)) = {snapshot,
                                                                       source.stream,
                                                                       source.batch,
                                                                       block,
                                                                       static_cast<std::uint32_t>(slots),
                                                                       static_cast<std::uint32_t>(reasserted)};
    published_.push_back({snapshot, {block, block + bytes}});
    running_ = snapshot;
}

void LogRing::abandon() {
    if (running_ != 0) published_.pop_back();  // the region's abandon() frees the commit's memory
    running_ = 0;
}

void LogRing::release_before(Snapshot floor) {
    // Before the memory is reused: a reader that meets the new content also sees a changed count of reclaims (Region).
    layout::store_release(region_.header().oldest_readable, floor);
    while (!published_.empty() && published_.front().snapshot < floor) {
        region_.free(published_.front().block);
        published_.pop_front();
    }
    std::erase_if(outgrown_, [&](const Outgrown& old) {
        if (old.since >= floor) return false;
        region_.free(old.block);
        return true;
    });
}

std::vector<Span> LogRing::spans() const {
    std::vector<Span> spans;
    for (const Published& known : published_)
        if (known.block.begin != known.block.end) spans.push_back(known.block);
    for (const Outgrown& old : outgrown_) spans.push_back(old.block);
    if (ring() != 0) spans.push_back(ring_span(ring()));
    return spans;
}

}  // namespace penstock
