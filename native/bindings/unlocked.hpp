// Work of the core without Python's lock, and fair taking back of it.
//
// CPython wakes who waits for its lock at each release, and lets go itself only after a wait of the switch interval
// without any: a thread that releases for a microsecond every thirty takes the lock back before the one that it woke
// has come, each time, and starves it (docs/adr/0051). So whoever is done lets those go first that wait here already.
#pragma once

#include <Python.h>
#include <sched.h>

#include <atomic>
#include <chrono>

namespace penstock {

class Unlocked {
public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked() {
        if (waiting_.load(std::memory_order_relaxed) != 0) let_go_first();
        waiting_.fetch_add(1, std::memory_order_relaxed);
        PyEval_RestoreThread(state_);
        waiting_.fetch_sub(1, std::memory_order_relaxed);
        taken_.fetch_add(1, std::memory_order_relaxed);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    // As long as a thread takes to wake. Beyond that it waits for somebody else, and this one may join it.
    static constexpr std::chrono::microseconds kPatience{200};

    static void let_go_first() {
        const std::uint32_t taken = taken_.load(std::memory_order_relaxed);
        const auto until = std::chrono::steady_clock::now() + kPatience;
        while (taken_.load(std::memory_order_relaxed) == taken && waiting_.load(std::memory_order_relaxed) != 0 &&
               std::chrono::steady_clock::now() < until)
            ::sched_yield();
    }

    PyThreadState* state_;
    inline static std::atomic<std::uint32_t> waiting_{0}, taken_{0};
};

}  // namespace penstock
