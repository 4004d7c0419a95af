// 128-bit integers: the compiler's type, with supporting functions.
#pragma once

#include <array>
#include <cstdint>

namespace penstock::expr {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

inline constexpr Int128 kMaxInt128 = static_cast<Int128>(~UInt128{0} >> 1);

constexpr UInt128 magnitude(Int128 value) {
    return value < 0 ? UInt128{0} - static_cast<UInt128>(value) : static_cast<UInt128>(value);
}

/// Whether the number fits 64 bits.
constexpr bool is_small(Int128 value) { return value == static_cast<std::int64_t>(value); }

inline constexpr int kMaxPowerOfTen = 38;  // 10^38 < 2^127
namespace int128_detail {
constexpr std::array<Int128, kMaxPowerOfTen + 1> make_powers() {
    std::array<Int128, kMaxPowerOfTen + 1> powers{};
    Int128 power = 1;
    for (std::size_t i = 0; i < powers.size(); ++i) {
        powers[i] = power;
        if (i + 1 < powers.size()) power *= 10;
    }
    return powers;
}
inline constexpr auto kPowers = make_powers();
}  // namespace int128_detail

constexpr Int128 power_of_ten(int exponent) { return int128_detail::kPowers[static_cast<std::size_t>(exponent)]; }

}  // namespace penstock::expr
