#include "expr/decimal.hpp"

#include <algorithm>

#include "expr/wide_int.hpp"

namespace penstock::expr {
namespace {

Decimal signed_decimal(UInt128 size, bool negative, int scale) {
    const auto mantissa = static_cast<Int128>(size);
    return {negative ? -mantissa : mantissa, static_cast<std::uint8_t>(scale)};
}

/// size × 10^-scale, with the fraction rounded to the digits that fit; empty if the integral part does not fit.
std::optional<Decimal> rounded_to_fit(UInt256 size, int scale, bool negative) {
    std::uint64_t last = 0;  // the digit dropped last
    bool rest = false;       // whether any lower digit was dropped
    while (!size.fits() || scale > Decimal::kMaxScale) {
        if (scale == 0) return std::nullopt;
        rest = rest || last != 0;
        last = divide_short(size, 10);
        --scale;
    }
    if (last > 5 || (last == 5 && (rest || (size.low & 1) != 0))) ++size.low;
    if (!size.fits()) return rounded_to_fit(size, scale, negative);
    return signed_decimal(size.low, negative, scale);
}

std::optional<Int128> mantissa_at(Decimal a, int scale) {
    constexpr int kSmallPower = 18;  // 2^63 * 10^18 < 2^123
    if (is_small(a.mantissa) && scale - a.scale <= kSmallPower) return a.mantissa * power_of_ten(scale - a.scale);
    Int128 out = 0;
    const bool overflow = __builtin_mul_overflow(a.mantissa, power_of_ten(scale - a.scale), &out);
    return overflow || out < -kMaxInt128 ? std::nullopt : std::optional(out);
}

/// The sum if a common scale, or the sum itself, exceeds 128 bits.
std::optional<Decimal> add_wide(Decimal a, Decimal b, int scale) {
    const UInt256 x = multiply_wide(magnitude(a.mantissa), static_cast<UInt128>(power_of_ten(scale - a.scale)));
    const UInt256 y = multiply_wide(magnitude(b.mantissa), static_cast<UInt128>(power_of_ten(scale - b.scale)));
    if ((a.mantissa < 0) == (b.mantissa < 0)) {
        const UInt128 low = x.low + y.low;
        return rounded_to_fit({x.high + y.high + (low < x.low ? 1 : 0), low}, scale, a.mantissa < 0);
    }
    const bool x_larger = x.high != y.high ? x.high > y.high : x.low >= y.low;
    const UInt256& large = x_larger ? x : y;
    const UInt256& small = x_larger ? y : x;
    return rounded_to_fit({large.high - small.high - (large.low < small.low ? 1 : 0), large.low - small.low}, scale,
                          x_larger ? a.mantissa < 0 : b.mantissa < 0);
}

/// The state of a long division: dividend = (quotient × divisor + remainder) × 10^-scale.
struct Division {
    UInt128 quotient, remainder, divisor;
    int scale;

    /// Whether the quotient has enough digits: kDivisionDigits in the fraction and as many in all.
    bool complete() const {
        constexpr UInt128 kSignificant = 100'000'000'000'000'000;  // 10^(kDivisionDigits - 1)
        if (scale < 0) return false;
        return remainder == 0 || scale == Decimal::kMaxScale ||
               (scale >= Decimal::kDivisionDigits && quotient >= kSignificant);
    }
    bool has_room(UInt128 power) const { return quotient < static_cast<UInt128>(kMaxInt128) / power - 1; }

    /// Computes the given number of further digits at once.
    void extend(int digits) {
        const auto power = static_cast<UInt128>(power_of_ten(digits));
        UInt256 next = multiply_wide(remainder, power);
        if (next.high == 0) {
            const UInt128 whole = next.low / divisor;
            remainder = next.low - whole * divisor;
            next.low = whole;
        } else {
            remainder = divide_long(next, divisor);
        }
        quotient = quotient * power + next.low;
        scale += digits;
    }
};

}  // namespace

std::optional<Decimal> add(Decimal a, Decimal b) {
    const int scale = std::max(a.scale, b.scale);
    Int128 sum = 0;
    if (a.scale == b.scale) {
        if (!__builtin_add_overflow(a.mantissa, b.mantissa, &sum) && sum >= -kMaxInt128) return Decimal{sum, a.scale};
        return add_wide(a, b, scale);
    }
    const auto x = mantissa_at(a, scale), y = mantissa_at(b, scale);
    if (x && y && !__builtin_add_overflow(*x, *y, &sum) && sum >= -kMaxInt128)
        return Decimal{sum, static_cast<std::uint8_t>(scale)};
    return add_wide(a, b, scale);
}

std::optional<Decimal> subtract(Decimal a, Decimal b) { return add(a, {-b.mantissa, b.scale}); }

std::optional<Decimal> multiply(Decimal a, Decimal b) {
    Int128 product = 0;
    const int scale = a.scale + b.scale;
    if (is_small(a.mantissa) && is_small(b.mantissa) && scale <= Decimal::kMaxScale)
        return Decimal{a.mantissa * b.mantissa, static_cast<std::uint8_t>(scale)};
    if (!__builtin_mul_overflow(a.mantissa, b.mantissa, &product) && product >= -kMaxInt128 &&
        scale <= Decimal::kMaxScale)
        return Decimal{product, static_cast<std::uint8_t>(scale)};
    return rounded_to_fit(multiply_wide(magnitude(a.mantissa), magnitude(b.mantissa)), scale,
                          (a.mantissa < 0) != (b.mantissa < 0));
}

std::optional<Decimal> divide(Decimal a, Decimal b) {
    if (b.mantissa == 0) return std::nullopt;
    const UInt128 size = magnitude(a.mantissa), divisor = magnitude(b.mantissa);
    Division division{size / divisor, size % divisor, divisor, a.scale - b.scale};
    while (!division.complete()) {
        int digits = std::max(1, Decimal::kDivisionDigits - division.scale);
        digits = std::min(digits, Decimal::kDivisionDigits);
        while (digits > 0 && !division.has_room(static_cast<UInt128>(power_of_ten(digits)))) --digits;
        if (digits == 0) break;
        division.extend(digits);
    }
    if (division.scale < 0) return std::nullopt;
    const UInt128 rest = divisor - division.remainder;
    const bool odd = (division.quotient & 1) != 0;
    if (division.remainder > rest || (division.remainder == rest && odd)) ++division.quotient;
    return without_trailing_zeros(
        signed_decimal(division.quotient, (a.mantissa < 0) != (b.mantissa < 0), division.scale));
}

int compare(Decimal a, Decimal b) {
    const int scale = std::max(a.scale, b.scale);
    const auto x = mantissa_at(a, scale), y = mantissa_at(b, scale);
    // At most one of the two is scaled up; if that overflows, it is the one further from zero.
    if (!x) return a.mantissa < 0 ? -1 : 1;
    if (!y) return b.mantissa < 0 ? 1 : -1;
    return (*x > *y) - (*x < *y);
}

Decimal to_integral(Decimal value, Rounding rounding) {
    if (value.scale == 0) return value;
    const Int128 unit = power_of_ten(value.scale);
    Int128 whole = value.mantissa / unit;
    Int128 fraction = value.mantissa % unit;
    if (fraction < 0 && rounding != Rounding::Truncate) {
        --whole;
        fraction += unit;
    }
    if (rounding == Rounding::Ceiling && fraction > 0) ++whole;
    if (rounding == Rounding::HalfUp && fraction >= unit - fraction) ++whole;
    return {whole, 0};
}

namespace {

template <class Integer>
Decimal strip_zeros(Integer mantissa, int scale) {
    for (const int step : {16, 8, 4, 2, 1}) {
        const auto power = static_cast<Integer>(power_of_ten(step));
        const Integer low_bits = (Integer{1} << step) - 1;  // a multiple of 10^n is one of 2^n: a cheap first test
        while (scale >= step && (mantissa & low_bits) == 0 && mantissa % power == 0) {
            mantissa /= power;
            scale -= step;
        }
    }
    return {mantissa, static_cast<std::uint8_t>(scale)};
}

}  // namespace

Decimal without_trailing_zeros(Decimal value) {
    if (is_small(value.mantissa)) return strip_zeros(static_cast<std::int64_t>(value.mantissa), value.scale);
    return strip_zeros(value.mantissa, value.scale);
}

}  // namespace penstock::expr
