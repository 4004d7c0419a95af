// A commit is one atomic addition to the stored graph: a batch's absorbed tuples, one INSERT DATA, or one load. It has
// one snapshot number (SN) across all shards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "source.hpp"

namespace penstock {

using Snapshot = std::uint32_t;                       // 0 = the empty store
inline constexpr Snapshot kMaxSnapshot = 0x7FFFFFFF;  // the state word of a list uses the 32nd bit

struct Edge {
    TermId subject;
    Label label;
    TermId object;
};

/// The origin of a commit. Standing queries bound the streams that they name to exact batches (docs/semantics.md §3).
struct CommitSource {
    std::uint32_t stream = 0;  // stream number from 1; 0 = update or load
    std::int64_t batch = 0;
};

/// Restricts a view: of this stream, only the batches up to and including `batch` are visible.
struct StreamBound {
    std::uint32_t stream;
    std::int64_t batch;
};

}  // namespace penstock
