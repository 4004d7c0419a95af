// Settings and counts of maintained evaluation (ADR 78), for the whole process.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace penstock::exec {

struct Maintenance {
    static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
    /// Operators keep their state if the evaluation of their input costs at least this number of rows. 0: they always
    /// keep their state, and update it at any cost. kNever: they never keep it. Relaxed, because a change need only
    /// affect evaluations that start later.
    static inline std::atomic<std::uint64_t> from = 2048;
    /// Number of updates so far. Relaxed: a statistic.
    static inline std::atomic<std::uint64_t> updates = 0;
};

}  // namespace penstock::exec
