// Waiting awake for a moment before sleeping: to wake a sleeping thread on an idle machine costs more than most answers
// take. On a busy one it is the other way round, as who waits awake keeps others from the core.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace penstock::dataplane {

/// Of one place where one thread waits again and again. Each time that it stays awake in vain, it sleeps at once twice
/// as many times before it tries again; so waiting awake takes at most kLongest in kMostAsleep waits where it never
/// pays, and nothing where nothing happens.
class Awake {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr auto kLongest = std::chrono::microseconds(200);  // a thread that slept has answered by then
    static constexpr std::uint32_t kMostAsleep = 255;

    /// Waits for look() to say that something is there, first awake, then by sleep(), which may return for nothing.
    template <class Look, class Sleep>
    void wait(Look look, Sleep sleep) {
        if (asleep_ > 0 || !several_cores()) {
            asleep_ -= asleep_ > 0;
            return sleep();
        }
        for (const auto until = Clock::now() + kLongest; Clock::now() < until;) {
            if (!look()) continue;
            penalty_ = 0;
            return;
        }
        penalty_ = std::min(2 * penalty_ + 1, kMostAsleep);
        asleep_ = penalty_;
        sleep();
    }

private:
    static bool several_cores() {
        static const bool several = std::thread::hardware_concurrency() > 1;
        return several;
    }
    std::uint32_t penalty_ = 0, asleep_ = 0;
};

}  // namespace penstock::dataplane
