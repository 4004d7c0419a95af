// Event times of accepted events after their stream's watermark. A checkpoint saves them, so that a replay recognises
// which of these events it already contains.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// The times are unordered. Times at or before the watermark are removed by a call of after(), or when there are too
/// many.
class Beyond {
public:
    /// Adds the times of accepted events. `watermark`: the current watermark of the stream.
    void add(std::span<const std::int64_t> times, std::int64_t watermark) {
        for (const std::int64_t time : times)
            if (time > watermark) times_.push_back(time);
        if (times_.size() < look_at_) return;
        after(watermark);
        look_at_ = 2 * times_.size() + kFew;
    }
    /// The times after the watermark. Valid until the next call.
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
