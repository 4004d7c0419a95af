#include "expr/exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "expr/wide_int.hpp"

namespace penstock::expr {
void ExactDecimalSum::accumulate(Wide& wide, Decimal value) {
    const UInt256 size =
        multiply_wide(magnitude(value.mantissa), static_cast<UInt128>(power_of_ten(Decimal::kMaxScale - value.scale)));
    const std::array<std::uint64_t, kLimbs> limbs{
        static_cast<std::uint64_t>(size.low), static_cast<std::uint64_t>(size.low >> 64),
        static_cast<std::uint64_t>(size.high), static_cast<std::uint64_t>(size.high >> 64), 0};
    const bool negative = value.mantissa < 0;
    UInt128 carry = negative ? 1 : 0;  // two's complement: subtraction adds the complement plus one
    for (int i = 0; i < kLimbs; ++i) {
        const auto at = static_cast<std::size_t>(i);
        carry += UInt128{wide[at]} + (negative ? ~limbs[at] : limbs[at]);
        wide[at] = static_cast<std::uint64_t>(carry);
        carry >>= 64;
    }
}

void ExactDecimalSum::spill() {
    if (!far_) far_ = std::make_unique<Wide>(Wide{});
    accumulate(*far_, {near_, near_scale_});
    near_ = 0;
    near_scale_ = 0;
}

namespace {

/// Headroom: the sum of two numbers below it is exact.
constexpr Int128 kRoom = kMaxInt128 / 4;
bool has_room(Int128 value) { return value < kRoom && value > -kRoom; }

bool fits_at(Decimal value, int scale) {
    Int128 scaled = value.mantissa;
    for (int i = value.scale; i < scale; ++i)
        if (!has_room(scaled) || __builtin_mul_overflow(scaled, Int128{10}, &scaled)) return false;
    return has_room(scaled);
}

}  // namespace

void ExactDecimalSum::add(Decimal value) {
    if (value.scale == near_scale_ && has_room(near_) && has_room(value.mantissa)) {
        near_ += value.mantissa;
        return;
    }
    const int scale = std::max(near_scale_, value.scale);
    if (!fits_at({near_, near_scale_}, scale)) spill();
    if (!fits_at(value, scale)) {
        if (!far_) far_ = std::make_unique<Wide>(Wide{});
        accumulate(*far_, value);
        return;
    }
    const auto sum = expr::add({near_, near_scale_}, value);
    near_ = sum->mantissa;
    near_scale_ = sum->scale;
}

std::optional<Decimal> ExactDecimalSum::total() const {
    if (!far_) return without_trailing_zeros({near_, near_scale_});
    Wide wide = *far_;
    accumulate(wide, {near_, near_scale_});
    const bool negative = (wide[kLimbs - 1] >> 63) != 0;
    if (negative) {
        UInt128 carry = 1;
        for (std::uint64_t& limb : wide) {
            carry += static_cast<std::uint64_t>(~limb);
            limb = static_cast<std::uint64_t>(carry);
            carry >>= 64;
        }
    }
    // Divides by ten until the number fits: removes trailing zeros first, then rounds digits of the fraction.
    int scale = Decimal::kMaxScale;
    std::uint64_t last = 0;
    bool rest = false;
    const auto fits = [&wide] { return wide[4] == 0 && wide[3] == 0 && wide[2] == 0 && (wide[1] >> 63) == 0; };
    while (!fits()) {
        if (scale-- == 0) return std::nullopt;
        rest = rest || last != 0;
        UInt128 remainder = 0;
        for (int i = kLimbs - 1; i >= 0; --i) {
            const UInt128 part = (remainder << 64) | wide[static_cast<std::size_t>(i)];
            wide[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(part / 10);
            remainder = part % 10;
        }
        last = static_cast<std::uint64_t>(remainder);
    }
    UInt128 size = (UInt128{wide[1]} << 64) | wide[0];
    if ((last > 5 || (last == 5 && (rest || (size & 1) != 0))) && size < static_cast<UInt128>(kMaxInt128)) ++size;
    const auto mantissa = static_cast<Int128>(size);
    return without_trailing_zeros({negative ? -mantissa : mantissa, static_cast<std::uint8_t>(scale)});
}

void ExactDoubleSum::cover(int limb) {
    if (limbs_.empty()) {
        first_ = limb;
        limbs_.resize(3);
        return;
    }
    if (limb < first_) {
        limbs_.insert(limbs_.begin(), static_cast<std::size_t>(first_ - limb), 0);
        first_ = limb;
    }
    const std::size_t need = static_cast<std::size_t>(limb - first_) + 3;
    if (limbs_.size() < need) limbs_.resize(need);
}

void ExactDoubleSum::update(double value, int sign) {
    const auto by = static_cast<std::uint64_t>(std::int64_t{sign});
    terms_ += by;
    if (!std::isfinite(value)) {
        (std::isnan(value) ? nans_ : value > 0 ? positive_infinities_ : negative_infinities_) += by;
        return;
    }
    if (value == 0) {
        if (std::signbit(value)) negative_zeros_ += by;
        return;
    }
    int exponent = 0;
    const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    // value = mantissa * 2^(exponent - 53); a subnormal's low bits are zero, so shifting them out is exact.
    int position = exponent - 53 - kLowestExponent;
    std::uint64_t size = static_cast<std::uint64_t>(mantissa < 0 ? -mantissa : mantissa);
    if (position < 0) {
        size >>= -position;
        position = 0;
    }
    const int limb = position / kLimbBits;
    const UInt128 shifted = static_cast<UInt128>(size) << (position % kLimbBits);  // at most 85 bits
    cover(limb);
    std::int64_t* at = limbs_.data() + (limb - first_);
    for (int i = 0; i < 3; ++i) {
        const auto part = static_cast<std::int64_t>(static_cast<std::uint32_t>(shifted >> (kLimbBits * i)));
        at[i] += (mantissa < 0) == (sign > 0) ? -part : part;
    }
    if (++pending_ == (std::uint32_t{1} << 30)) {
        carry(limbs_);
        pending_ = 1;
    }
}

/// Normalises all limbs but the last to [0, 2^32).
void ExactDoubleSum::carry(std::vector<std::int64_t>& limbs) {
    std::int64_t carry = 0;
    for (std::int64_t& limb : limbs) {
        limb += carry;
        carry = limb >> kLimbBits;
        limb -= carry * (std::int64_t{1} << kLimbBits);
    }
    while (carry != 0 && carry != -1) {
        const std::int64_t low = carry & 0xFFFFFFFF;
        limbs.push_back(low);
        carry >>= kLimbBits;
    }
    if (carry == -1) limbs.back() -= std::int64_t{1} << kLimbBits;
}

double ExactDoubleSum::total(bool to_float) const {
    const bool above = positive_infinities_ != 0, below_all = negative_infinities_ != 0;
    if (nans_ != 0 || (above && below_all)) return std::numeric_limits<double>::quiet_NaN();
    if (above) return std::numeric_limits<double>::infinity();
    if (below_all) return -std::numeric_limits<double>::infinity();
    std::vector<std::int64_t> limbs = limbs_;
    carry(limbs);
    const bool negative = !limbs.empty() && limbs.back() < 0;
    if (negative) {
        for (std::int64_t& limb : limbs) limb = -limb;
        carry(limbs);
    }
    while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
    if (limbs.empty()) return terms_ != 0 && negative_zeros_ == terms_ ? -0.0 : 0.0;

    // The bits above the rounding position: counted down from the top bit, or from the type's smallest unit up.
    const int top_limb = static_cast<int>(limbs.size()) - 1;
    const int top_bits = 64 - __builtin_clzll(static_cast<std::uint64_t>(limbs.back()));
    const int precision = to_float ? 24 : 53;
    const int smallest = to_float ? -149 : kLowestExponent;  // exponent of the type's smallest unit
    const int base = kLimbBits * first_ + kLowestExponent;   // exponent of the lowest bit stored
    const int top = base + kLimbBits * top_limb + top_bits;  // the value is below 2^top
    const int unit = std::max(top - precision, smallest);
    const auto bit = [&](int exponent) -> unsigned {
        if (exponent < base || exponent >= top) return 0;
        const auto at = static_cast<unsigned>(exponent - base);
        return static_cast<unsigned>(limbs[at / kLimbBits] >> (at % kLimbBits)) & 1u;
    };
    std::uint64_t mantissa = 0;
    for (int exponent = top - 1; exponent >= unit; --exponent) mantissa = mantissa << 1 | bit(exponent);
    bool below = false;
    for (int exponent = base; exponent < std::min(unit - 1, top) && !below; ++exponent) below = bit(exponent) != 0;
    if (bit(unit - 1) != 0 && (below || (mantissa & 1) != 0)) ++mantissa;
    double out = std::ldexp(static_cast<double>(mantissa), unit);
    if (to_float) out = static_cast<float>(out);
    return negative ? -out : out;
}

}  // namespace penstock::expr
