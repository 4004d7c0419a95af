// Append logs in the region, for readers of other processes. With them such a reader can read any leased snapshot, as
// views of this process can (docs/adr/0016).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "store/append_log.hpp"
#include "store/commit.hpp"
#include "store/region.hpp"

namespace penstock {

/// The writer's side. release_before() frees the memory of a log once no lease is older.
class LogRing {
public:
    explicit LogRing(Region& region) : region_(region) {}

    /// Puts the commit into the ring. Readers ignore it until the shard's `published` includes it. LimitError if the
    /// region is full; the caller then calls abandon().
    void add(Snapshot snapshot, const CommitSource& source, const AppendLog& log);
    void keep() { running_ = 0; }
    void abandon();
    /// Frees the logs of commits before `floor`, and replaced rings that only readers of such commits could use. If the
    /// ring contains no commit at or after `floor`, the ring begins again at `floor`.
    void release_before(Snapshot floor);
    /// All memory of the ring and its logs. The next incarnation can reuse this memory.
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
    Snapshot running_ = 0;  // in published_, but not yet visible
};

}  // namespace penstock
