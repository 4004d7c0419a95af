#include "expr/arithmetic.hpp"

#include "expr/time_arithmetic.hpp"

namespace penstock::expr {
namespace {

template <class Real>
double compute_real(Arithmetic operation, Real a, Real b) {
    switch (operation) {
        case Arithmetic::Add:
            return static_cast<Real>(a + b);
        case Arithmetic::Subtract:
            return static_cast<Real>(a - b);
        case Arithmetic::Multiply:
            return static_cast<Real>(a * b);
        case Arithmetic::Divide:
            return static_cast<Real>(a / b);  // IEEE: x/0 is infinite or NaN
    }
    return 0;
}

/// Sums, differences and products of integers; Error on overflow.
Value compute_integer(Arithmetic operation, Int128 a, Int128 b) {
    Int128 out = 0;
    bool overflow = false;
    if (operation == Arithmetic::Add)
        overflow = __builtin_add_overflow(a, b, &out);
    else if (operation == Arithmetic::Subtract)
        overflow = __builtin_sub_overflow(a, b, &out);
    else if (a == static_cast<std::int64_t>(a) && b == static_cast<std::int64_t>(b))
        out = a * b;
    else
        overflow = __builtin_mul_overflow(a, b, &out);
    return overflow || out < -kMaxInt128 ? Value{} : Value::integer(out);
}

std::optional<Decimal> compute_decimal(Arithmetic operation, Decimal a, Decimal b) {
    switch (operation) {
        case Arithmetic::Add:
            return add(a, b);
        case Arithmetic::Subtract:
            return subtract(a, b);
        case Arithmetic::Multiply:
            return multiply(a, b);
        case Arithmetic::Divide:
            return divide(a, b);
    }
    return std::nullopt;
}

}  // namespace

double as_double(const Value& number) {
    return number.type >= ValueType::Float ? number.real : to_double(number.decimal());
}
float as_float(const Value& number) {
    return number.type >= ValueType::Float ? static_cast<float>(number.real) : to_float(number.decimal());
}

Value compute(Arithmetic operation, const Value& a, const Value& b) {
    if (!a.numeric() || !b.numeric()) return compute_time(operation, a, b);
    const ValueType widest = std::max(a.type, b.type);
    if (widest == ValueType::Double)
        return Value::of_real(widest, compute_real<double>(operation, as_double(a), as_double(b)));
    if (widest == ValueType::Float)
        return Value::of_real(widest, compute_real<float>(operation, as_float(a), as_float(b)));
    if (widest == ValueType::Integer && operation != Arithmetic::Divide)
        return compute_integer(operation, a.number, b.number);
    const auto result = compute_decimal(operation, a.decimal(), b.decimal());
    return result ? Value::decimal(*result) : Value{};
}

Value negate(const Value& value) {
    if (!value.numeric()) return {};
    if (value.type >= ValueType::Float) return Value::of_real(value.type, -value.real);
    if (value.type == ValueType::Integer) return Value::integer(-value.number);
    return Value::decimal({-value.number, value.scale});
}

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
    const ValueType widest = std::max(a.type, b.type);
    if (widest == ValueType::Double) return as_double(a) <=> as_double(b);
    if (widest == ValueType::Float) return as_float(a) <=> as_float(b);
    return compare(a.decimal(), b.decimal()) <=> 0;
}

}  // namespace penstock::expr
