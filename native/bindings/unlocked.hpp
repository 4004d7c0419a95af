// Work of the core without Python's lock, and fair taking back of it.
//
// CPython wakes who waits for its lock at each release, and lets go itself only after a wait of the switch interval
// without any: a thread that releases for a microsecond every thirty takes the lock back before the one that it woke
// has come, each time, and starves it (docs/adr/0051). So whoever is done takes its turn here, and waits for the lock
// awake: a thread that sleeps takes 50 us to come, longer than most hold the lock.
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
    // Beyond that the lock is with a thread that works in Python, or sleeps there.
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
    // `held_`: who took the lock here last has not let go of it here; elsewhere it may have.
    inline static std::atomic<bool> held_{false};
    inline static std::atomic<std::uint32_t> arrived_{0}, taken_{0};
    inline static const int at_fork_ = ::pthread_atfork(nullptr, nullptr, forget_others);
};

}  // namespace penstock
