// Functions on numbers (SPARQL 1.1 §17.4.4). Results have the operand's type; derived integers become xsd:integer.
#include <cmath>

#include "expr/arithmetic.hpp"
#include "expr/functions.hpp"

namespace penstock::expr {
namespace {

/// fn:round: ties towards positive infinity; preserves the sign of zero.
double round_half_up(double value) {
    if (!(std::fabs(value) < 0x1p52)) return value;  // integral already, infinite or NaN
    const double below = std::floor(value);
    return std::copysign(value - below >= 0.5 ? below + 1 : below, value);
}

Value to_whole(const Value& value, Rounding rounding) {
    switch (value.type) {
        case ValueType::Integer:
            return Value::integer(value.number);
        case ValueType::Decimal:
            return Value::decimal(to_integral(value.decimal(), rounding));
        case ValueType::Float:
        case ValueType::Double:
            return Value::of_real(value.type, rounding == Rounding::Floor     ? std::floor(value.real)
                                              : rounding == Rounding::Ceiling ? std::ceil(value.real)
                                                                              : round_half_up(value.real));
        default:
            return {};
    }
}

Value ceil(Call&, std::span<const Value> args) { return to_whole(args[0], Rounding::Ceiling); }
Value floor(Call&, std::span<const Value> args) { return to_whole(args[0], Rounding::Floor); }
Value round(Call&, std::span<const Value> args) { return to_whole(args[0], Rounding::HalfUp); }

Value abs(Call&, std::span<const Value> args) {
    const Value& value = args[0];
    if (!value.numeric()) return {};
    if (value.type >= ValueType::Float) return Value::of_real(value.type, std::fabs(value.real));
    if (value.number < 0) return negate(value);
    return value.type == ValueType::Integer ? Value::integer(value.number) : value;
}

Value rand(Call& call, std::span<const Value>) {
    return Value::of_real(ValueType::Double, call.frame.memory.random.uniform());
}

}  // namespace

std::span<const FunctionEntry> number_functions() {
    static constexpr FunctionEntry kEntries[] = {
        {"abs", 1, 1, abs}, {"ceil", 1, 1, ceil}, {"floor", 1, 1, floor}, {"round", 1, 1, round}, {"rand", 0, 0, rand},
    };
    return kEntries;
}

}  // namespace penstock::expr
