#include "expr/datatypes.hpp"

#include <limits>
#include <unordered_map>

#include "expr/real_text.hpp"

namespace penstock::expr {
namespace {

using Table = std::unordered_map<std::string_view, Datatype>;

const Table& known_datatypes() {
    static const Table table = [] {
        Table out = {
            {"string", {.type = ValueType::String}},
            {"boolean", {.type = ValueType::Boolean}},
            {"decimal", {.type = ValueType::Decimal}},
            {"float", {.type = ValueType::Float}},
            {"double", {.type = ValueType::Double}},
            {"dateTime", {.type = ValueType::DateTime}},
            {"dateTimeStamp", {.type = ValueType::DateTime, .timezone_required = true}},
            {"date", {.type = ValueType::Date}},
            {"time", {.type = ValueType::Time}},
            {"duration", {.type = ValueType::Duration}},
            {"yearMonthDuration", {.type = ValueType::YearMonthDuration}},
            {"dayTimeDuration", {.type = ValueType::DayTimeDuration}},
        };
        for (int i = 0; i < kIntegerTypes; ++i) {
            const auto type = static_cast<IntegerType>(i);
            out[integer_type_iri(type).substr(kXsd.size())] = {.type = ValueType::Integer, .integer = type};
        }
        return out;
    }();
    return table;
}

struct Range {
    Int128 least = -kMaxInt128, most = kMaxInt128;
};

Range range_of(IntegerType type) {
    using limits64 = std::numeric_limits<std::int64_t>;
    switch (type) {
        case IntegerType::Integer:
            return {};
        case IntegerType::Long:
            return {limits64::min(), limits64::max()};
        case IntegerType::Int:
            return {INT32_MIN, INT32_MAX};
        case IntegerType::Short:
            return {INT16_MIN, INT16_MAX};
        case IntegerType::Byte:
            return {INT8_MIN, INT8_MAX};
        case IntegerType::NonNegativeInteger:
            return {.least = 0};
        case IntegerType::PositiveInteger:
            return {.least = 1};
        case IntegerType::NonPositiveInteger:
            return {.most = 0};
        case IntegerType::NegativeInteger:
            return {.most = -1};
        case IntegerType::UnsignedLong:
            return {0, std::numeric_limits<std::uint64_t>::max()};
        case IntegerType::UnsignedInt:
            return {0, UINT32_MAX};
        case IntegerType::UnsignedShort:
            return {0, UINT16_MAX};
        case IntegerType::UnsignedByte:
            return {0, UINT8_MAX};
    }
    return {};
}

/// An integer of more than 127 bits is in the range of unbounded types only, on their side of zero.
bool huge_in_range(bool negative, IntegerType type) {
    const Range range = range_of(type);
    return negative ? range.least == -kMaxInt128 : range.most == kMaxInt128;
}

Value huge(std::string_view lexical) {
    double size = 0;
    parse_real(lexical, size);
    return Value::of_real(ValueType::Huge, size);
}

Value parse_exact(std::string_view lexical, const Datatype& datatype) {
    const bool integer = datatype.type == ValueType::Integer;
    Decimal number;
    switch (parse_decimal(lexical, integer, number)) {
        case ParsedNumber::Malformed:
            break;
        case ParsedNumber::TooLarge:
            if (!integer || huge_in_range(lexical.starts_with('-'), datatype.integer)) return huge(lexical);
            break;
        case ParsedNumber::Ok:
            if (!integer) return Value::decimal(number);
            if (in_range(number.mantissa, datatype.integer)) return Value::integer(number.mantissa);
            break;
    }
    return Value::of_text(ValueType::Malformed, {}, {});
}

Value parse_moment(std::string_view lexical, const Datatype& datatype) {
    Moment moment;
    const bool ok = datatype.type == ValueType::DateTime ? parse_date_time(lexical, moment)
                    : datatype.type == ValueType::Date   ? parse_date(lexical, moment)
                                                         : parse_time(lexical, moment);
    if (!ok || (datatype.timezone_required && !moment.has_timezone())) return Value::of_text(ValueType::Opaque, {}, {});
    return Value::moment(datatype.type, moment);
}

Value parse_duration_value(std::string_view lexical, ValueType type) {
    const DurationKind kind = type == ValueType::YearMonthDuration ? DurationKind::YearMonth
                              : type == ValueType::DayTimeDuration ? DurationKind::DayTime
                                                                   : DurationKind::Any;
    Duration duration;
    if (!parse_duration(lexical, kind, duration)) return Value::of_text(ValueType::Opaque, {}, {});
    return Value::duration(type, duration);
}

Value parse_float(std::string_view lexical, ValueType type) {
    double wide = 0;
    float single = 0;
    if (type == ValueType::Double ? parse_real(lexical, wide) : parse_real(lexical, single))
        return Value::of_real(type, type == ValueType::Double ? wide : single);
    return Value::of_text(ValueType::Malformed, {}, {});
}

}  // namespace

Datatype find_xsd_datatype(std::string_view local_name) {
    const auto found = known_datatypes().find(local_name);
    return found == known_datatypes().end() ? Datatype{} : found->second;
}

Datatype find_datatype(std::string_view iri) {
    if (iri == kRdfLangString) return {.type = ValueType::LangString};
    return iri.starts_with(kXsd) ? find_xsd_datatype(iri.substr(kXsd.size())) : Datatype{};
}

bool in_range(Int128 value, IntegerType type) {
    const Range range = range_of(type);
    return value >= range.least && value <= range.most;
}

Value parse_lexical(std::string_view lexical, const Datatype& datatype) {
    switch (datatype.type) {
        case ValueType::String:
            return Value::string(lexical);
        case ValueType::Integer:
        case ValueType::Decimal:
            return parse_exact(lexical, datatype);
        case ValueType::Float:
        case ValueType::Double:
            return parse_float(lexical, datatype.type);
        case ValueType::Boolean:
            if (lexical == "true" || lexical == "1") return Value::boolean(true);
            if (lexical == "false" || lexical == "0") return Value::boolean(false);
            return Value::of_text(ValueType::Malformed, {}, {});
        case ValueType::DateTime:
        case ValueType::Date:
        case ValueType::Time:
            return parse_moment(lexical, datatype);
        case ValueType::YearMonthDuration:
        case ValueType::DayTimeDuration:
        case ValueType::Duration:
            return parse_duration_value(lexical, datatype.type);
        default:
            return Value::of_text(ValueType::Opaque, {}, {});
    }
}

}  // namespace penstock::expr
