// Time and rows per operator for EXPLAIN. Exists only in profiled runs; the others pay one comparison per operator.
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
    struct Entry {
        std::uint64_t rows = 0;
        std::uint64_t nanos = 0;
    };

    /// Entry `operators` (the last) takes what belongs to no operator.
    explicit Profiler(std::size_t operators) : entries_(operators + 1), current_(operators), since_(Clock::now()) {}

    /// Returns who was running before.
    std::size_t enter(std::size_t index) {
        auto now = Clock::now();
        if (current_ < entries_.size()) entries_[current_].nanos += nanos(now - since_);
        since_ = now;
        if (index >= entries_.size()) entries_.resize(index + 1);
        return std::exchange(current_, index);
    }
    void add_rows(std::size_t index, std::size_t rows) { entries_[index].rows += rows; }
    const std::vector<Entry>& entries() const { return entries_; }

private:
    using Clock = std::chrono::steady_clock;
    static std::uint64_t nanos(Clock::duration d) {
        return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
    }
    std::vector<Entry> entries_;
    std::size_t current_;
    Clock::time_point since_;
};

}  // namespace penstock::exec
