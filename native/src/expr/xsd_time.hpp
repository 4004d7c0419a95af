// xsd:dateTime, date, time and the durations: parsing, spelling, comparison (XSD 1.1 part 2, §3.3 and §3.4).
//
// Times count attoseconds (10^-18 s) in 128 bits, so 18 fraction digits are exact. Years have at most nine digits. A
// literal with a longer year is not parsed and remains opaque.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "expr/decimal.hpp"

namespace penstock::expr {

inline constexpr Int128 kSecond = 1'000'000'000'000'000'000;
inline constexpr Int128 kMillisecond = kSecond / 1000;
inline constexpr Int128 kMinute = 60 * kSecond;
inline constexpr Int128 kHour = 60 * kMinute;
inline constexpr Int128 kDay = 24 * kHour;
inline constexpr std::int16_t kNoTimezone = INT16_MIN;

/// A point of the seven-property model: a count on the local time line since 1970-01-01T00:00 (a time of day: since
/// midnight; a date: its first moment), with the offset of local time from UTC in minutes.
struct Moment {
    Int128 local = 0;
    std::int16_t timezone = kNoTimezone;

    bool has_timezone() const { return timezone != kNoTimezone; }
    Int128 utc() const { return has_timezone() ? local - timezone * kMinute : local; }
};

struct Duration {
    std::int32_t months = 0;
    Int128 seconds = 0;  // in attoseconds; of the same sign as months
};

bool parse_date_time(std::string_view text, Moment& out);
bool parse_date(std::string_view text, Moment& out);
bool parse_time(std::string_view text, Moment& out);

enum class DurationKind : std::uint8_t { Any, YearMonth, DayTime };
bool parse_duration(std::string_view text, DurationKind kind, Duration& out);

/// XSD's partial order (§3.3.7.4). If only one of the two values has a timezone, they are comparable only if an offset
/// of up to 14 hours in either direction does not change the result. Both values must have the same type.
std::partial_ordering compare(Moment a, Moment b);
/// Durations are comparable if the months alone or the seconds alone decide the order.
std::partial_ordering compare(Duration a, Duration b);

struct DateFields {
    std::int64_t year = 0;
    int month = 0, day = 0;
};
struct TimeFields {
    int hour = 0, minute = 0;
    Int128 second = 0;  // attoseconds
};
DateFields date_fields(Moment moment);
TimeFields time_fields(Moment moment);
/// Attoseconds since the local midnight.
Int128 time_of_day(Moment moment);

std::string date_time_text(Moment moment);
std::string date_text(Moment moment);
std::string time_text(Moment moment);
std::string duration_text(Duration duration, DurationKind kind);
/// "Z", "-08:00", or "" without timezone (SPARQL 1.1 §17.4.5.9).
std::string timezone_text(std::int16_t timezone);

}  // namespace penstock::expr
