// Constructor functions xsd:T(x) (SPARQL 1.1 §17.5; F&O §17.1).
#include <cmath>

#include "expr/arithmetic.hpp"
#include "expr/datatypes.hpp"
#include "expr/functions.hpp"
#include "expr/real_text.hpp"

namespace penstock::expr {
namespace {

/// Casts from strings ignore whitespace around a lexical form (XSD whiteSpace = collapse).
std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t from = text.find_first_not_of(kSpace);
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
}

Value from_text(const Value& value, const Datatype& datatype) {
    const Value out = parse_lexical(trimmed(value.text), datatype);
    return out.type >= ValueType::Malformed ? Value{} : out;
}

Value cast_string(Call& call, std::span<const Value> args) {
    const Value& value = args[0];
    switch (value.type) {
        case ValueType::Blank:
        case ValueType::Malformed:
        case ValueType::Opaque:
            return {};
        case ValueType::Decimal:
            return Value::string(call.frame.keep(decimal_text(value.decimal(), true)));
        case ValueType::Float:
            return Value::string(call.frame.keep(real_cast_text(static_cast<float>(value.real))));
        case ValueType::Double:
            return Value::string(call.frame.keep(real_cast_text(value.real)));
        default:
            break;
    }
    std::string scratch;
    return Value::string(call.frame.keep(canonical_text(value, scratch)));
}

Value cast_boolean(Call&, std::span<const Value> args) {
    const Value& value = args[0];
    if (value.type == ValueType::String) return from_text(value, {.type = ValueType::Boolean});
    return value.type == ValueType::Boolean || value.numeric() ? to_value(effective_boolean(value)) : Value{};
}

Value cast_decimal(Call&, std::span<const Value> args) {
    const Value& value = args[0];
    switch (value.type) {
        case ValueType::String:
            return from_text(value, {.type = ValueType::Decimal});
        case ValueType::Boolean:
        case ValueType::Integer:
            return Value::decimal({value.number, 0});
        case ValueType::Decimal:
            return value;
        case ValueType::Float:
        case ValueType::Double: {
            const auto exact = from_double(value.real);
            return exact ? Value::decimal(*exact) : Value{};
        }
        default:
            return {};
    }
}

template <IntegerType type>
Value cast_integer(Call& call, std::span<const Value> args) {
    Value out;
    if (args[0].type == ValueType::String) {
        out = from_text(args[0], {.type = ValueType::Integer, .integer = type});
    } else {
        const Value whole = cast_decimal(call, args);
        if (whole.error()) return {};
        out = Value::integer(to_integral(whole.decimal(), Rounding::Truncate).mantissa);
        if (!in_range(out.number, type)) return {};
    }
    if (!out.error() && type != IntegerType::Integer) out.tag = integer_type_iri(type);
    return out;
}

template <ValueType type>
Value cast_real(Call&, std::span<const Value> args) {
    const Value& value = args[0];
    if (value.type == ValueType::String) return from_text(value, {.type = type});
    if (value.type == ValueType::Boolean) return Value::of_real(type, value.truth() ? 1 : 0);
    if (value.type == ValueType::Huge)
        return Value::of_real(type, type == ValueType::Double ? value.real : static_cast<float>(value.real));
    if (!value.numeric()) return {};
    return Value::of_real(type, type == ValueType::Double ? as_double(value) : as_float(value));
}

Value cast_date_time(Call&, std::span<const Value> args) {
    const Value& value = args[0];
    if (value.type == ValueType::String) return from_text(value, {.type = ValueType::DateTime});
    if (value.type != ValueType::DateTime && value.type != ValueType::Date) return {};
    return Value::moment(ValueType::DateTime, value.moment());  // a date starts at midnight
}

Value cast_date(Call&, std::span<const Value> args) {
    const Value& value = args[0];
    if (value.type == ValueType::String) return from_text(value, {.type = ValueType::Date});
    if (value.type == ValueType::Date) return Value::moment(ValueType::Date, value.moment());
    if (value.type != ValueType::DateTime) return {};
    return Value::moment(ValueType::Date, {value.number - time_of_day(value.moment()), value.timezone});
}

Value cast_time(Call&, std::span<const Value> args) {
    const Value& value = args[0];
    if (value.type == ValueType::String) return from_text(value, {.type = ValueType::Time});
    if (value.type == ValueType::Time) return Value::moment(ValueType::Time, value.moment());
    if (value.type != ValueType::DateTime) return {};
    return Value::moment(ValueType::Time, {time_of_day(value.moment()), value.timezone});
}

template <ValueType type>
Value cast_duration(Call&, std::span<const Value> args) {
    const Value& value = args[0];
    if (value.type == ValueType::String) return from_text(value, {.type = type});
    if (value.type < ValueType::YearMonthDuration || value.type > ValueType::Duration) return {};
    Duration duration = value.duration();  // fields that the target lacks are dropped
    if (type == ValueType::YearMonthDuration) duration.seconds = 0;
    if (type == ValueType::DayTimeDuration) duration.months = 0;
    return Value::duration(type, duration);
}

}  // namespace

std::span<const FunctionEntry> cast_functions() {
    using enum IntegerType;
    static constexpr FunctionEntry kEntries[] = {
        {"cast:string", 1, 1, cast_string},
        {"cast:boolean", 1, 1, cast_boolean},
        {"cast:decimal", 1, 1, cast_decimal},
        {"cast:float", 1, 1, cast_real<ValueType::Float>},
        {"cast:double", 1, 1, cast_real<ValueType::Double>},
        {"cast:dateTime", 1, 1, cast_date_time},
        {"cast:date", 1, 1, cast_date},
        {"cast:time", 1, 1, cast_time},
        {"cast:duration", 1, 1, cast_duration<ValueType::Duration>},
        {"cast:yearMonthDuration", 1, 1, cast_duration<ValueType::YearMonthDuration>},
        {"cast:dayTimeDuration", 1, 1, cast_duration<ValueType::DayTimeDuration>},
        {"cast:integer", 1, 1, cast_integer<Integer>},
        {"cast:long", 1, 1, cast_integer<Long>},
        {"cast:int", 1, 1, cast_integer<Int>},
        {"cast:short", 1, 1, cast_integer<Short>},
        {"cast:byte", 1, 1, cast_integer<Byte>},
        {"cast:nonNegativeInteger", 1, 1, cast_integer<NonNegativeInteger>},
        {"cast:positiveInteger", 1, 1, cast_integer<PositiveInteger>},
        {"cast:nonPositiveInteger", 1, 1, cast_integer<NonPositiveInteger>},
        {"cast:negativeInteger", 1, 1, cast_integer<NegativeInteger>},
        {"cast:unsignedLong", 1, 1, cast_integer<UnsignedLong>},
        {"cast:unsignedInt", 1, 1, cast_integer<UnsignedInt>},
        {"cast:unsignedShort", 1, 1, cast_integer<UnsignedShort>},
        {"cast:unsignedByte", 1, 1, cast_integer<UnsignedByte>},
    };
    return kEntries;
}

}  // namespace penstock::expr
