// Time per operator for EXPLAIN. Exists only in timed runs; the others pay one comparison per operator.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock::exec {

/// Attributes the time that passes to the operator that is running: each switch ends one stretch and begins the next.
class Profiler {
public:
    /// Entry `operators` (the last) takes what belongs to no operator.
    explicit Profiler(std::size_t operators) : nanos_(operators + 1), current_(operators), since_(Clock::now()) {}

    /// Returns who was running before.
    std::size_t enter(std::size_t index) {
        auto now = Clock::now();
        if (current_ < nanos_.size()) nanos_[current_] += nanos(now - since_);
        since_ = now;
        if (index >= nanos_.size()) nanos_.resize(index + 1);
        return std::exchange(current_, index);
    }
    /// By profile index; operators compiled during the run and never reached have no entry.
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
