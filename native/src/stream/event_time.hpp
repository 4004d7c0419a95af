// Arithmetic of event time: 64-bit milliseconds, possibly negative, without overflow near either limit.
#pragma once

#include <cstdint>
#include <limits>

#include "source.hpp"

namespace penstock {

inline constexpr std::int64_t kLastTime = std::numeric_limits<std::int64_t>::max();
/// Event times below this are rejected: kNever means "no time", and batch numbers must stay above it too.
inline constexpr std::int64_t kFirstTime = kNever + 2;

inline std::int64_t add_saturating(std::int64_t a, std::int64_t b) {
    std::int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b > 0 ? kLastTime : kNever;
}

inline std::int64_t subtract_saturating(std::int64_t a, std::int64_t b) {
    std::int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference)) return difference;
    return b > 0 ? kNever : kLastTime;
}

inline std::int64_t multiply_saturating(std::int64_t a, std::int64_t b) {
    std::int64_t product;
    if (!__builtin_mul_overflow(a, b, &product)) return product;
    return (a < 0) == (b < 0) ? kLastTime : kNever;
}

/// The batch that holds `ts`: batch k holds (k*batch_ms, (k+1)*batch_ms].
inline std::int64_t batch_of(std::int64_t ts, std::int64_t batch_ms) {
    // C++ division truncates towards zero. A positive remainder therefore means that the quotient is already rounded
    // down. If the remainder is zero, `ts` is the last instant of the previous batch.
    const std::int64_t quotient = ts / batch_ms;
    return ts % batch_ms > 0 ? quotient : quotient - 1;
}

/// batch_of() for a sequence of rows. Optimised for the case that a row is in the same batch as the previous row,
/// because a division costs as much as storing a tuple.
class BatchFinder {
public:
    explicit BatchFinder(std::int64_t batch_ms) : batch_ms_(batch_ms) {}

    std::int64_t operator()(std::int64_t ts) {
        if (ts <= after_ || ts > end_) find(ts);
        return batch_;
    }

private:
    void find(std::int64_t ts) {
        batch_ = batch_of(ts, batch_ms_);
        after_ = multiply_saturating(batch_, batch_ms_);
        end_ = multiply_saturating(batch_ + 1, batch_ms_);
    }

    std::int64_t batch_ms_;
    std::int64_t batch_ = 0, after_ = 0, end_ = 0;  // empty range: the first row computes its batch
};

}  // namespace penstock
