// Append logs in the region, for readers of other processes: with them such a reader sees any snapshot that a lease
// keeps, as views of this process do (docs/adr/0016).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "store/append_log.hpp"
#include "store/commit.hpp"
#include "store/region.hpp"

namespace penstock {

/// The writer's side. Memory that it gives up is returned by release_before() once no lease is older.
class LogRing {
public:
    explicit LogRing(Region& region) : region_(region) {}

    /// Puts the commit into the ring; readers look at it once the shard's `published` says so. LimitError where the
    /// region is full: then abandon().
    void add(Snapshot snapshot, const CommitSource& source, const AppendLog& log);
    void keep() { running_ = 0; }
    void abandon();
    /// Gives back the logs of older commits, and rings that were outgrown when none older than `floor` was readable.
    /// Where the ring has no commit from `floor` on, it begins anew there.
    void release_before(Snapshot floor);
    /// What the next incarnation may use anew: all of it.
    std::vector<Span> spans() const;

private:
    struct Published {
        Snapshot snapshot;
        Span block;
    };
    struct Outgrown {
        Snapshot since;
        Span block;
    };
    layout::Offset write(const AppendLog& log, std::uint64_t bytes);
    void reserve(Snapshot snapshot);
    std::uint64_t ring() const { return region_.header().commits; }

    Region& region_;
    std::deque<Published> published_;  // ascending
    std::vector<Outgrown> outgrown_;
    Snapshot running_ = 0;  // in published_ already, but not visible
};

}  // namespace penstock
