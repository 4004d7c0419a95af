// The limits of one evaluation: wall time, memory, cancellation. They are checked for each morsel. An evaluation that
// exceeds a limit ends with LimitError. The engine is not affected.
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
    /// `seconds`: the time limit, from now. 0 or less, and more than some thirty years, mean no limit. `bytes`: the
    /// memory limit. 0 means no limit.
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
    /// Counts memory before its allocation. LimitError if the sum exceeds the limit. A negative amount releases memory,
    /// and never gives an error.
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
    /// The number of bytes that can still be charged. At least 1, also if the limit is exceeded. 0 if the memory is
    /// unlimited.
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
