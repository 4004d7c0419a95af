// Sums that do not depend on the order of their terms: equal multisets give the same term id for every order of rows.
// ISTREAM and DSTREAM compare answers of evaluations whose row orders differ. With plain floating-point addition, an
// unchanged sum could seem to have changed.
//
// Decimals are added exactly in 320 bits. Doubles are added in a superaccumulator: fixed-point limbs that cover the
// range of exponents seen. Every addition is exact; only the final result is rounded (Kulisch, Computer Arithmetic and
// Validity, 2013, ch. 8; the small form of Neal, arXiv:1505.05571). Memory per group: 16 bytes for integers that fit,
// and 8 bytes for each 32 binary orders of magnitude that its doubles span.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "expr/decimal.hpp"

namespace penstock::expr {

class ExactDecimalSum {
public:
    void add(Decimal value);
    /// Empty if the sum does not fit a Decimal. The result has no trailing zeros. It therefore does not depend on terms
    /// that were added and later subtracted.
    std::optional<Decimal> total() const;

private:
    static constexpr int kLimbs = 5;
    using Wide = std::array<std::uint64_t, kLimbs>;  // two's complement, in units of 10^-38
    static void accumulate(Wide& wide, Decimal value);
    void spill();

    Int128 near_ = 0;  // the sum of the additions since the last spill, at near_scale_
    std::uint8_t near_scale_ = 0;
    std::unique_ptr<Wide> far_;
};

class ExactDoubleSum {
public:
    void add(double value) { update(value, 1); }
    /// Removes a term that was added, or that will be added later.
    void remove(double value) { update(value, -1); }
    std::size_t bytes() const { return limbs_.capacity() * sizeof(std::int64_t); }
    /// The exact sum, rounded once, to double or to float precision. +0.0 if nothing was added.
    double total(bool to_float = false) const;

private:
    static constexpr int kLimbBits = 32;
    static constexpr int kLowestExponent = -1074;  // of the smallest subnormal's unit
    void update(double value, int sign);
    void cover(int limb);
    static void carry(std::vector<std::int64_t>& limbs);

    std::vector<std::int64_t> limbs_;  // value = sum of limbs_[i] * 2^(32 * (first_ + i) + kLowestExponent)
    int first_ = 0;
    std::uint32_t pending_ = 0;  // additions since the last carry; each adds less than 2^33 to a limb
    // Numbers of terms, modulo 2^64.
    std::uint64_t terms_ = 0, negative_zeros_ = 0, nans_ = 0, positive_infinities_ = 0, negative_infinities_ = 0;
};

}  // namespace penstock::expr
