// A short busy wait before a thread sleeps. On an idle machine, it takes longer to wake a sleeping thread than to wait
// for most answers. On a busy machine, the busy wait is worse, because it occupies a core that other threads need.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace penstock::dataplane {

/// For one place in the code at which one thread waits repeatedly. After an unsuccessful busy wait, some of the next
/// waits sleep at once. Each further unsuccessful busy wait doubles the number of these waits, to at most kMostAsleep.
/// If busy waits never succeed, kMostAsleep waits therefore cost at most one busy wait of kLongest.
class Awake {
public:
    using Clock = std::chrono::steady_clock;
    // Longer than the time in which a sleeping peer answers.
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
