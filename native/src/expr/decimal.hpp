// xsd:decimal and xsd:integer as numbers: a 128-bit mantissa and a decimal scale. Integers have scale 0.
//
// Sums, differences and products are exact if they fit. If only the fraction does not fit, it is rounded (half to even)
// to the number of digits that fit. An integral part of more than 127 bits is an overflow (err:FOAR0002).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "expr/int128.hpp"

namespace penstock::expr {

struct Decimal {
    Int128 mantissa = 0;     // never the most negative number, so that negation is safe
    std::uint8_t scale = 0;  // digits after the point, at most kMaxScale

    static constexpr int kMaxScale = kMaxPowerOfTen;
    /// The minimum numbers of fraction digits, and of significant digits, of an inexact quotient.
    static constexpr int kDivisionDigits = 18;
};

enum class ParsedNumber : std::uint8_t { Ok, Malformed, TooLarge };

/// Parses a lexical form of xsd:decimal, or of xsd:integer if `integer` is set; no surrounding space. Truncates
/// fraction digits that do not fit.
ParsedNumber parse_decimal(std::string_view text, bool integer, Decimal& out);

std::optional<Decimal> add(Decimal a, Decimal b);
std::optional<Decimal> subtract(Decimal a, Decimal b);
std::optional<Decimal> multiply(Decimal a, Decimal b);
std::optional<Decimal> divide(Decimal a, Decimal b);  // also empty for b = 0
int compare(Decimal a, Decimal b);                    // exact: -1, 0, 1

enum class Rounding : std::uint8_t { Floor, Ceiling, HalfUp, Truncate };  // HalfUp: ties towards +infinity (fn:round)
Decimal to_integral(Decimal value, Rounding rounding);

Decimal without_trailing_zeros(Decimal value);

double to_double(Decimal value);  // nearest, ties to even
float to_float(Decimal value);
/// The exact value, truncated to the digits that fit; empty for NaN, infinities and overflow.
std::optional<Decimal> from_double(double value);
/// Exact comparison; `value` must not be NaN.
int compare(Decimal a, double value);

/// Canonical spellings: integers "-12", decimals "1.5" and "2.0" (XSD 1.0 §3.2.3.2). With `integral_plain` an integral
/// decimal is spelled as an integer (casts to xsd:string, F&O §17.1.2).
std::string integer_text(Int128 value);
std::string decimal_text(Decimal value, bool integral_plain = false);

}  // namespace penstock::expr
