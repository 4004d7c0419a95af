// How often dictionaries have dropped terms.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

/// Number of sweeps of all dictionaries of this process. Relaxed: a sweep and the evaluations that read terms which it
/// may drop are never concurrent.
inline std::atomic<std::uint64_t> sweeps_so_far = 0;
inline std::uint64_t dictionary_sweeps() { return sweeps_so_far.load(std::memory_order_relaxed); }

}  // namespace penstock
