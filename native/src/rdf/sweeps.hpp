// How often dictionaries have dropped terms.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

/// The number of sweeps of all dictionaries of this process. Relaxed operations suffice, because a sweep is never
/// concurrent with an evaluation that reads terms which this sweep could drop.
inline std::atomic<std::uint64_t> sweeps_so_far = 0;
inline std::uint64_t dictionary_sweeps() { return sweeps_so_far.load(std::memory_order_relaxed); }

}  // namespace penstock
