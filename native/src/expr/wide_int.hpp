// Unsigned 256-bit integers, for products and scaled dividends of 128-bit mantissas.
#pragma once

#include <array>
#include <cstdint>

#include "expr/int128.hpp"

namespace penstock::expr {

struct UInt256 {
    UInt128 high = 0, low = 0;

    bool fits() const { return high == 0 && low <= static_cast<UInt128>(kMaxInt128); }
};

inline UInt256 multiply_wide(UInt128 a, UInt128 b) {
    const UInt128 mask = ~std::uint64_t{0};
    const UInt128 a0 = a & mask, a1 = a >> 64, b0 = b & mask, b1 = b >> 64;
    const UInt128 low = a0 * b0;
    const UInt128 middle = a1 * b0 + (low >> 64);  // cannot overflow: (2^64-1)^2 + 2^64-1 < 2^128
    const UInt128 carry = a0 * b1 + (middle & mask);
    return {a1 * b1 + (middle >> 64) + (carry >> 64), (carry << 64) | (low & mask)};
}

/// Divides in place and returns the remainder. Divides limb by limb, so the divisor must fit 64 bits.
inline std::uint64_t divide_short(UInt256& value, std::uint64_t divisor) {
    std::array<std::uint64_t, 4> limbs{
        static_cast<std::uint64_t>(value.high >> 64), static_cast<std::uint64_t>(value.high),
        static_cast<std::uint64_t>(value.low >> 64), static_cast<std::uint64_t>(value.low)};
    UInt128 remainder = 0;
    for (std::uint64_t& limb : limbs) {
        const UInt128 part = (remainder << 64) | limb;
        limb = static_cast<std::uint64_t>(part / divisor);
        remainder = part % divisor;
    }
    value.high = (static_cast<UInt128>(limbs[0]) << 64) | limbs[1];
    value.low = (static_cast<UInt128>(limbs[2]) << 64) | limbs[3];
    return static_cast<std::uint64_t>(remainder);
}

/// Divides in place by a non-zero number of at most 127 bits and returns the remainder (restoring division, bitwise).
inline UInt128 divide_long(UInt256& value, UInt128 divisor) {
    UInt256 quotient;
    UInt128 remainder = 0;
    for (int bit = 255; bit >= 0; --bit) {
        const UInt128 word = bit >= 128 ? value.high : value.low;
        remainder = (remainder << 1) | ((word >> (bit & 127)) & 1);
        if (remainder < divisor) continue;
        remainder -= divisor;
        (bit >= 128 ? quotient.high : quotient.low) |= UInt128{1} << (bit & 127);
    }
    value = quotient;
    return remainder;
}

}  // namespace penstock::expr
