// Accepted events that lie after their stream's watermark: a replay learns from a checkpoint which of them it has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// Their times, in no order. What the watermark has passed goes when someone asks, or too many lie about.
class Beyond {
public:
    /// Notes accepted events; `watermark` is where their stream's is by now.
    void add(std::span<const std::int64_t> times, std::int64_t watermark) {
        for (const std::int64_t time : times)
            if (time > watermark) times_.push_back(time);
        if (times_.size() < look_at_) return;
        after(watermark);
        look_at_ = 2 * times_.size() + kFew;
    }
    /// Valid until the next call.
    std::span<const std::int64_t> after(std::int64_t watermark) {
        std::erase_if(times_, [=](std::int64_t time) { return time <= watermark; });
        return times_;
    }
    std::size_t held() const { return times_.size(); }

private:
    static constexpr std::size_t kFew = 1024;
    std::vector<std::int64_t> times_;
    std::size_t look_at_ = kFew;
};

}  // namespace penstock
