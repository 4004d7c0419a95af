// The time of each operator, for EXPLAIN. Exists only in timed runs. In other runs, the only cost is one comparison per
// operator.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock::exec {

/// Attributes elapsed time to the operator that is running. Each switch ends one interval and begins the next.
class Profiler {
public:
    /// The last entry, `operators`, receives the time outside of operators.
    explicit Profiler(std::size_t operators) : nanos_(operators + 1), current_(operators), since_(Clock::now()) {}

    /// Switches to operator `index` and returns the operator that was running before.
    std::size_t enter(std::size_t index) {
        auto now = Clock::now();
        if (current_ < nanos_.size()) nanos_[current_] += nanos(now - since_);
        since_ = now;
        if (index >= nanos_.size()) nanos_.resize(index + 1);
        return std::exchange(current_, index);
    }
    /// The times by profile index. Operators that were compiled during the run and did not run have no entry.
    const std::vector<std::uint64_t>& nanos() const { return nanos_; }

private:
    using Clock = std::chrono::steady_clock;
    static std::uint64_t nanos(Clock::duration d) {
        return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
    }
    std::vector<std::uint64_t> nanos_;
    std::size_t current_;
    Clock::time_point since_;
};

}  // namespace penstock::exec
