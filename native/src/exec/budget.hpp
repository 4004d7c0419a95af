// The limits of one evaluation: wall time, memory, cancellation. They are checked per morsel. Exceeding one ends that
// evaluation with LimitError; the engine is unaffected.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include "errors.hpp"

namespace penstock {

class Budget {
public:
    using Clock = std::chrono::steady_clock;
    Budget() = default;
    /// `seconds` from now (at most 0, or more than some thirty years: no limit) and `bytes` (0: no limit).
    Budget(double seconds, std::size_t bytes) : limit_bytes_(bytes) {
        if (seconds > 0 && seconds < kForever)
            deadline_ =
                Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

    /// Throws LimitError if the time is over or the evaluation was cancelled.
    void check() const {
        if (cancelled_.load(std::memory_order_relaxed)) throw LimitError("the evaluation was cancelled");
        if (deadline_ != Clock::time_point::max() && Clock::now() > deadline_)
            throw LimitError("the evaluation exceeded its time limit");
    }
    /// Accounts for memory before its allocation; LimitError beyond the limit. Negative amounts release, without
    /// errors.
    void charge(std::ptrdiff_t bytes) {
        used_ += bytes;
        if (bytes > 0 && limit_bytes_ != 0 && used_ > static_cast<std::ptrdiff_t>(limit_bytes_))
            throw LimitError("the evaluation exceeded its memory limit");
    }
    /// Seconds left: at least 0.001, also after the deadline; 0 if the time is unlimited.
    double seconds_left() const {
        if (deadline_ == Clock::time_point::max()) return 0;
        return std::max(1e-3, std::chrono::duration<double>(deadline_ - Clock::now()).count());
    }
    /// Bytes that may still be charged: at least 1, also beyond the limit; 0 if they are unlimited.
    std::size_t bytes_left() const {
        const auto limit = static_cast<std::ptrdiff_t>(limit_bytes_);
        return limit == 0 ? 0 : static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, limit - used_));
    }
    void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
    std::ptrdiff_t used() const { return used_; }

private:
    static constexpr double kForever = 1e9;
    Clock::time_point deadline_ = Clock::time_point::max();
    std::size_t limit_bytes_ = 0;
    std::ptrdiff_t used_ = 0;
    std::atomic<bool> cancelled_{false};
};

}  // namespace penstock
