// Numeric operators with the promotions of XPath (SPARQL 1.1 §17.3): integer -> decimal -> float -> double.
#pragma once

#include <compare>

#include "expr/value.hpp"

namespace penstock::expr {

enum class Arithmetic : std::uint8_t { Add, Subtract, Multiply, Divide };

/// Error for operands that are neither numbers nor times (time_arithmetic.hpp), for overflow of integers and decimals,
/// and for their division by zero. Derived integers compute as xsd:integer; the quotient of two integers is a decimal.
Value compute(Arithmetic operation, const Value& a, const Value& b);
Value negate(const Value& value);

double as_double(const Value& number);
float as_float(const Value& number);

/// Both must be numeric. Unordered with NaN.
std::partial_ordering compare_numbers(const Value& a, const Value& b);

}  // namespace penstock::expr
