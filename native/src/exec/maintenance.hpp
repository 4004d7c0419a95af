// Settings and counts of maintained evaluation (ADR 78), for the whole process.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace penstock::exec {

struct Maintenance {
    static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
    /// Operators keep their state if the evaluation of their input costs at least this many rows. 0: always, and they
    /// update it at any cost. kNever: never. Relaxed: evaluations that start later follow a change.
    static inline std::atomic<std::uint64_t> from = 2048;
    /// Number of updates so far. Relaxed: a statistic.
    static inline std::atomic<std::uint64_t> updates = 0;
};

}  // namespace penstock::exec
