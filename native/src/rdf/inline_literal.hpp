// Literals encoded in their ids: the layouts of the 60-bit payloads, and accessors to values that use no strings.
//
// Invariant (property-tested): decode_inline(encode_inline(x)) == x, byte for byte. A literal whose spelling does not
// fit a layout is an entry of the dictionary, regardless of its value. Equal terms therefore have equal ids, but
// literals with equal *values* can have different ids. Payloads, from the top bit down:
//
//   Integer   type 4 | plus 1 | value 55 signed          "5", "-5", "+5"; no leading zeros, in the type's range
//   Decimal   scale 5 | mantissa 55 signed               scale = digits after the point: "5", "5.0", "-0.25"
//   Double, Float without exponent:  0 | minus 1 | fraction digits 5 | mantissa 53
//                                                      "54", "54.0", "-0.0"; fraction digits 28..31: NaN, INF …
//   Double, Float with exponent:     1 | minus 1 | style 2 | fraction digits 4 | exponent 6 signed | mantissa 46
//                                                      "5.4E1", "5.4e1", "5.4e+01"
//   Boolean   0 false, 1 true, 2 "0", 3 "1"
//   DateTime  milliseconds 47 (biased) | fraction digits 2 | timezone 11
//   Date      days 49 (biased) | timezone 11
//   String    bytes 56, first byte on top | length 4 (at most 7)
//
// Doubles and floats: mantissas below 2^53 and powers of ten up to 22 are exact, so one IEEE operation gives the
// correctly rounded value (Clinger, PLDI'90). DateTimes with a timezone store UTC, others local time; the ids of each
// kind sort by instant. Ids of short strings sort by code points.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "rdf/term.hpp"

namespace penstock {

/// The inline id of a literal; kUnbound if it needs a dictionary entry.
TermId encode_inline(std::string_view lexical, std::string_view datatype, std::string_view lang);
/// The exact spelling of an inline literal or blank node, stored in `scratch`. Must not be called for dictionary ids.
TermView decode_inline(TermId id, std::string& scratch);
/// Datatype IRI of any inline literal.
std::string_view inline_datatype(TermId id);

constexpr bool is_inline_literal(TermId id) { return tag_of(id) >= Tag::Integer && tag_of(id) <= Tag::String; }
/// Whether encode_inline can return this id. Ids from outside (push_columns, files) must be checked with this function,
/// because the accessors are only defined for ids that encode_inline returns.
bool is_valid_inline(TermId id);
/// Integer, Decimal, Double or Float.
constexpr bool is_inline_numeric(TermId id) { return tag_of(id) >= Tag::Integer && tag_of(id) <= Tag::Float; }

// ---- xsd:integer and the types derived from it
enum class IntegerType : std::uint8_t {
    Integer,
    Long,
    Int,
    Short,
    Byte,
    NonNegativeInteger,
    PositiveInteger,
    NonPositiveInteger,
    NegativeInteger,
    UnsignedLong,
    UnsignedInt,
    UnsignedShort,
    UnsignedByte,
};
inline constexpr int kIntegerTypes = 13;

inline constexpr std::int64_t kInlineIntegerMax = (std::int64_t{1} << 54) - 1;
inline constexpr std::int64_t kInlineIntegerMin = -(std::int64_t{1} << 54);

std::string_view integer_type_iri(IntegerType type);
constexpr IntegerType integer_type(TermId id) { return static_cast<IntegerType>(payload_of(id) >> 56); }
/// Value of an Integer id.
constexpr std::int64_t integer_value(TermId id) { return static_cast<std::int64_t>(id << 9) >> 9; }
constexpr bool fits_inline_integer(std::int64_t value) {
    return value >= kInlineIntegerMin && value <= kInlineIntegerMax;
}
/// Id of an integer in canonical spelling. The value must fit (fits_inline_integer) and be in the type's range.
constexpr TermId make_integer(std::int64_t value, IntegerType type = IntegerType::Integer) {
    return make_id(Tag::Integer, (std::uint64_t{static_cast<std::uint8_t>(type)} << 56) |
                                     (static_cast<std::uint64_t>(value) << 9 >> 9));
}

// ---- xsd:decimal
/// mantissa / 10^scale; scale is at most 18, so that 10^scale fits an int64.
struct DecimalParts {
    std::int64_t mantissa = 0;
    int scale = 0;
};
inline constexpr int kMaxDecimalScale = 18;
constexpr DecimalParts decimal_value(TermId id) {
    return {static_cast<std::int64_t>(id << 9) >> 9, static_cast<int>(payload_of(id) >> 55)};
}
/// Id of the decimal with exactly `scale` digits after the point; kUnbound if it does not fit.
constexpr TermId make_decimal(DecimalParts value) {
    if (!fits_inline_integer(value.mantissa) || value.scale < 0 || value.scale > kMaxDecimalScale) return kUnbound;
    return make_id(Tag::Decimal, (static_cast<std::uint64_t>(value.scale) << 55) |
                                     (static_cast<std::uint64_t>(value.mantissa) << 9 >> 9));
}

// ---- xsd:double and xsd:float
namespace inline_detail {
/// encode_inline uses powers up to 22; the further ones keep forged ids within the table.
inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23,
                                          1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35,
                                          1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46, 1e47};
inline constexpr std::uint64_t kFirstSpecial = 28;  // "fraction digits" of NaN; then INF, -INF, +INF
double special_double(std::uint64_t which);
}  // namespace inline_detail

/// Value of a Double id.
inline double double_value(TermId id) {
    using inline_detail::kPowersOfTen;
    const std::uint64_t payload = payload_of(id);
    double value;
    if ((payload >> 59) == 0) {
        const std::uint64_t digits = (payload >> 53) & 31;
        if (digits >= inline_detail::kFirstSpecial) return inline_detail::special_double(digits);
        value = static_cast<double>(payload & ((std::uint64_t{1} << 53) - 1)) / kPowersOfTen[digits];
    } else {
        const auto digits = static_cast<int>((payload >> 52) & 15);
        const int exponent = static_cast<int>(static_cast<std::int64_t>(payload << 12) >> 58) - digits;
        const auto mantissa = static_cast<double>(payload & ((std::uint64_t{1} << 46) - 1));
        value = exponent < 0 ? mantissa / kPowersOfTen[-exponent] : mantissa * kPowersOfTen[exponent];
    }
    return (payload >> 58) & 1 ? -value : value;
}

/// Value of a Float id: the float nearest to the decimal text (encode_inline rejects spellings for which double
/// rounding gives another value).
inline float float_value(TermId id) { return static_cast<float>(double_value(id)); }

// ---- xsd:boolean
constexpr bool boolean_value(TermId id) { return (id & 1) != 0; }
constexpr TermId make_boolean(bool value) { return make_id(Tag::Boolean, value ? 1 : 0); }

// ---- xsd:dateTime and xsd:date
struct DateTimeParts {
    std::int64_t millis = 0;  // since 1970-01-01T00:00: UTC with a timezone, local time without
    bool has_timezone = false;
    int offset_minutes = 0;  // local = UTC + offset; 0 without timezone
    bool zulu = false;       // spelt "Z" rather than "+00:00"

    constexpr std::int64_t local_millis() const { return millis + std::int64_t{offset_minutes} * 60'000; }
};
/// Days of the local calendar; an xsd:date's instant is its local midnight.
struct DateParts {
    std::int64_t days = 0;  // since 1970-01-01
    bool has_timezone = false;
    int offset_minutes = 0;
    bool zulu = false;

    constexpr std::int64_t start_millis() const { return days * 86'400'000 - std::int64_t{offset_minutes} * 60'000; }
};

namespace inline_detail {
inline constexpr std::int64_t kMillisBias = std::int64_t{1} << 46;
inline constexpr std::int64_t kDaysBias = std::int64_t{1} << 48;
inline constexpr int kZoneNone = 0, kZoneZulu = 1, kZoneOffset = 842;  // timezone field: 842 + offset in minutes
constexpr int zone_offset(std::uint64_t zone) { return zone < 2 ? 0 : static_cast<int>(zone) - kZoneOffset; }
}  // namespace inline_detail

constexpr DateTimeParts datetime_value(TermId id) {
    const std::uint64_t zone = id & 2047;
    return {static_cast<std::int64_t>(payload_of(id) >> 13) - inline_detail::kMillisBias,
            zone != inline_detail::kZoneNone, inline_detail::zone_offset(zone), zone == inline_detail::kZoneZulu};
}
constexpr DateParts date_value(TermId id) {
    const std::uint64_t zone = id & 2047;
    return {static_cast<std::int64_t>(payload_of(id) >> 11) - inline_detail::kDaysBias,
            zone != inline_detail::kZoneNone, inline_detail::zone_offset(zone), zone == inline_detail::kZoneZulu};
}

/// Proleptic Gregorian calendar.
struct CivilDate {
    int year = 1970;
    int month = 1;  // 1..12
    int day = 1;    // 1..31
};
constexpr std::int64_t days_from_civil(CivilDate date) {
    const std::int64_t y = date.month <= 2 ? std::int64_t{date.year} - 1 : date.year;  // years begin in March
    const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
    const std::int64_t year_of_era = y - era * 400;
    const std::int64_t day_of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
    return era * 146'097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719'468;
}
constexpr CivilDate civil_from_days(std::int64_t days) {
    days += 719'468;
    const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
    const std::int64_t day_of_era = days - era * 146'097;
    const std::int64_t year_of_era =
        (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
    const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const std::int64_t shifted = (5 * day_of_year + 2) / 153;  // March = 0
    const int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
    return {static_cast<int>(year_of_era + era * 400 + (month <= 2 ? 1 : 0)), month,
            static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1)};
}
constexpr int days_in_month(int year, int month) {
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 ? (leap ? 29 : 28) : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

// ---- short xsd:string
inline constexpr std::size_t kInlineStringBytes = 7;
/// Text of a String id, stored in `buffer`. It may contain NUL bytes: use the view's length.
inline std::string_view short_string(TermId id, char (&buffer)[8]) {
    const std::uint64_t big_endian = __builtin_bswap64((id & kPayloadMask) << 4);
    std::memcpy(buffer, &big_endian, 8);
    return {buffer, static_cast<std::size_t>(id & 7)};
}
/// Id of a string of at most 7 bytes.
inline TermId make_short_string(std::string_view text) {
    std::uint64_t bytes = 0;
    if (!text.empty()) std::memcpy(&bytes, text.data(), text.size());
    return make_id(Tag::String, (__builtin_bswap64(bytes) >> 4) | text.size());
}

}  // namespace penstock
