// Work of the core without the GIL, and fair reacquisition of the GIL.
//
// CPython wakes a waiting thread at each release of the GIL. A thread that does not release it by itself is forced to
// only after the switch interval, if no release occurs in between. A thread that releases the GIL for a microsecond
// every thirty therefore reacquires it each time before the woken thread runs, and starves it (docs/adr/0051). Threads
// that finish work here therefore queue for their turn, and busy-wait for the GIL: a sleeping thread takes 50 us to
// wake, longer than most threads hold the GIL.
#pragma once

#include <Python.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace penstock {

class Unlocked {
public:
    Unlocked() : state_(PyEval_SaveThread()) { held_.store(false, std::memory_order_relaxed); }
    ~Unlocked() {
        const std::uint32_t turn = arrived_.fetch_add(1, std::memory_order_relaxed);
        if (!is_free(turn)) wait(turn);
        PyEval_RestoreThread(state_);
        held_.store(true, std::memory_order_relaxed);
        taken_.fetch_add(1, std::memory_order_relaxed);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    // Beyond that, the thread that holds the GIL is working in Python or sleeping.
    static constexpr std::chrono::microseconds kPatience{200};

    static bool is_free(std::uint32_t turn) {
        const std::uint32_t before = turn - taken_.load(std::memory_order_relaxed);
        return !held_.load(std::memory_order_relaxed) && static_cast<std::int32_t>(before) <= 0;
    }

    static void wait(std::uint32_t turn) {
        const auto until = std::chrono::steady_clock::now() + kPatience;
        while (!is_free(turn) && std::chrono::steady_clock::now() < until) ::sched_yield();
    }

    static void forget_others() { taken_.store(arrived_.load()); }

    PyThreadState* state_;
    // `held_`: the last thread that acquired the GIL here has not released it here; it may have released it in other
    // code.
    inline static std::atomic<bool> held_{false};
    inline static std::atomic<std::uint32_t> arrived_{0}, taken_{0};
    inline static const int at_fork_ = ::pthread_atfork(nullptr, nullptr, forget_others);
};

}  // namespace penstock
