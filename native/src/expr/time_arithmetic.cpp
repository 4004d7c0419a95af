#include "expr/time_arithmetic.hpp"

#include <algorithm>

#include "rdf/inline_literal.hpp"

namespace penstock::expr {
namespace {

constexpr Int128 kMaxYears = 999'999'999;
constexpr Int128 kLongest = kMaxYears * 365 * kDay;

bool is_moment(const Value& value) { return value.type >= ValueType::DateTime && value.type <= ValueType::Time; }
bool is_duration(const Value& value) {
    return value.type >= ValueType::YearMonthDuration && value.type <= ValueType::Duration;
}
bool in_bounds(Int128 time) { return time <= kLongest && time >= -kLongest; }

/// XML Schema part 2, appendix E: adds months first, limits the day to the month's last, then adds seconds.
Value shift(const Value& moment, Int128 months, Int128 seconds) {
    Int128 local = moment.number;
    if (months != 0) {
        const DateFields date = date_fields(moment.moment());
        const Int128 count = date.year * Int128{12} + (date.month - 1) + months;
        const Int128 year = count >= 0 ? count / 12 : -((-count + 11) / 12);
        if (year > kMaxYears || year < -kMaxYears) return {};
        const auto month = static_cast<int>(count - year * 12) + 1;
        const int day = std::min(date.day, days_in_month(static_cast<int>(year), month));
        local = days_from_civil({static_cast<int>(year), month, day}) * kDay + time_of_day(moment.moment());
    }
    local += seconds;
    if (!in_bounds(local)) return {};
    const Int128 of_day = time_of_day({local, kNoTimezone});
    if (moment.type == ValueType::Date) local -= of_day;
    if (moment.type == ValueType::Time) local = of_day;
    return Value::moment(moment.type, {local, moment.timezone});
}

Value difference(const Value& a, const Value& b) {
    if (a.type != b.type || a.moment().has_timezone() != b.moment().has_timezone()) return {};
    return Value::duration(ValueType::DayTimeDuration, {0, a.moment().utc() - b.moment().utc()});
}

Value combine(const Value& a, const Value& b, int sign) {
    if (a.type != b.type) return {};
    const std::int64_t months = std::int64_t{a.months} + std::int64_t{sign} * b.months;
    const Int128 seconds = a.number + sign * b.number;
    const bool mixed = (months > 0 && seconds < 0) || (months < 0 && seconds > 0);
    if (mixed || months != static_cast<std::int32_t>(months) || !in_bounds(seconds)) return {};
    return Value::duration(a.type, {static_cast<std::int32_t>(months), seconds});
}

}  // namespace

Value compute_time(Arithmetic operation, const Value& a, const Value& b) {
    if (operation != Arithmetic::Add && operation != Arithmetic::Subtract) return {};
    const int sign = operation == Arithmetic::Add ? 1 : -1;
    if (is_duration(a) && is_duration(b)) return combine(a, b, sign);
    if (is_moment(a) && is_moment(b)) return sign < 0 ? difference(a, b) : Value{};
    if (is_duration(a) && is_moment(b)) return sign > 0 ? compute_time(operation, b, a) : Value{};
    if (!is_moment(a) || !is_duration(b) || (a.type == ValueType::Time && b.months != 0)) return {};
    return shift(a, Int128{sign} * b.months, sign * b.number);
}

}  // namespace penstock::expr
