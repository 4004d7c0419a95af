// Numeric operators with the promotions of XPath (SPARQL 1.1 §17.3): integer -> decimal -> float -> double.
#pragma once

#include <compare>

#include "expr/value.hpp"

namespace penstock::expr {

enum class Arithmetic : std::uint8_t { Add, Subtract, Multiply, Divide };

/// The result is Error in three cases: an operand is neither a number nor a time (time_arithmetic.hpp), an integer or
/// decimal overflows, or an integer or decimal is divided by zero. Derived integers are computed as xsd:integer. The
/// quotient of two integers is a decimal.
Value compute(Arithmetic operation, const Value& a, const Value& b);
Value negate(const Value& value);

double as_double(const Value& number);
float as_float(const Value& number);

/// Both must be numeric. Unordered with NaN.
std::partial_ordering compare_numbers(const Value& a, const Value& b);

}  // namespace penstock::expr
