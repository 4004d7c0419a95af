// Busy-waiting for a moment before sleeping. On an idle machine, waking a sleeping thread costs more than most answers
// take. On a busy machine the opposite holds, because a busy-waiting thread occupies a core that others need.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace penstock::dataplane {

/// For one place where one thread waits repeatedly. After each unsuccessful busy wait, twice as many of the next waits
/// sleep at once. If busy-waiting never succeeds, it therefore takes at most kLongest in kMostAsleep waits; if nothing
/// happens, it takes no time.
class Awake {
public:
    using Clock = std::chrono::steady_clock;
    // Longer than a sleeping peer takes to answer.
    static constexpr auto kLongest = std::chrono::microseconds(200);
    static constexpr std::uint32_t kMostAsleep = 255;

    /// Waits until look() returns true: first busy, then by sleep(), which may return spuriously.
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
