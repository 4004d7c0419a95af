#include "rdf/inline_time.hpp"

#include "rdf/inline_literal.hpp"
#include "rdf/inline_spelling.hpp"

namespace penstock::inline_detail {
namespace {

/// Reads the rest of the text as a timezone; returns the timezone field, or -1.
int read_zone(Cursor& cursor) {
    if (cursor.done()) return kZoneNone;
    if (cursor.take('Z')) return cursor.done() ? kZoneZulu : -1;
    const bool minus = cursor.take('-');
    if (!minus && !cursor.take('+')) return -1;
    int hours = 0;
    int minutes = 0;
    if (!cursor.number(2, hours) || !cursor.take(':') || !cursor.number(2, minutes) || !cursor.done()) return -1;
    const int offset = hours * 60 + minutes;
    if (minutes > 59 || offset > 840 || (minus && offset == 0)) return -1;  // "-00:00" has no canonical value
    return kZoneOffset + (minus ? -offset : offset);
}

/// Accepts four-digit years only.
bool read_date(Cursor& cursor, CivilDate& date) {
    return cursor.number(4, date.year) && cursor.take('-') && cursor.number(2, date.month) && cursor.take('-') &&
           cursor.number(2, date.day) && date.month >= 1 && date.month <= 12 && date.day >= 1 &&
           date.day <= days_in_month(date.year, date.month);
}

/// Reads the time of day in milliseconds, and the number of digits in its fraction of a second.
bool read_time(Cursor& cursor, int& millis, int& fraction_digits) {
    int hour = 0;
    int minute = 0;
    int second = 0;
    if (!cursor.number(2, hour) || !cursor.take(':') || !cursor.number(2, minute) || !cursor.take(':') ||
        !cursor.number(2, second) || hour > 23 || minute > 59 || second > 59)
        return false;
    int fraction = 0;
    fraction_digits = 0;
    if (cursor.take('.')) {
        std::uint64_t digits = 0;
        fraction_digits = cursor.digits(digits);
        if (fraction_digits < 1 || fraction_digits > 3) return false;
        fraction = static_cast<int>(digits) * (fraction_digits == 1 ? 100 : fraction_digits == 2 ? 10 : 1);
    }
    millis = ((hour * 60 + minute) * 60 + second) * 1000 + fraction;
    return true;
}

void append_zone(std::string& out, std::uint64_t zone) {
    if (zone == kZoneNone) return;
    if (zone == kZoneZulu) {
        out += 'Z';
        return;
    }
    const int offset = zone_offset(zone);
    const auto magnitude = static_cast<std::uint64_t>(offset < 0 ? -offset : offset);
    out += offset < 0 ? '-' : '+';
    append_padded(out, magnitude / 60, 2);
    out += ':';
    append_padded(out, magnitude % 60, 2);
}

void append_civil(std::string& out, std::int64_t days) {
    const CivilDate date = civil_from_days(days);
    append_padded(out, static_cast<std::uint64_t>(date.year), 4);
    out += '-';
    append_padded(out, static_cast<std::uint64_t>(date.month), 2);
    out += '-';
    append_padded(out, static_cast<std::uint64_t>(date.day), 2);
}

}  // namespace

TermId encode_date(std::string_view lexical) {
    Cursor cursor(lexical);
    CivilDate date;
    if (!read_date(cursor, date)) return kUnbound;
    const int zone = read_zone(cursor);
    if (zone < 0) return kUnbound;
    const auto days = static_cast<std::uint64_t>(days_from_civil(date) + kDaysBias);
    return make_id(Tag::Date, (days << 11) | static_cast<std::uint64_t>(zone));
}

TermId encode_datetime(std::string_view lexical) {
    Cursor cursor(lexical);
    CivilDate date;
    int time = 0;
    int fraction_digits = 0;
    if (!read_date(cursor, date) || !cursor.take('T') || !read_time(cursor, time, fraction_digits)) return kUnbound;
    const int zone = read_zone(cursor);
    if (zone < 0) return kUnbound;
    const std::int64_t local = days_from_civil(date) * 86'400'000 + time;
    const std::int64_t millis =
        local - std::int64_t{zone_offset(static_cast<std::uint64_t>(zone))} * 60'000 + kMillisBias;
    if (millis < 0 || millis >= 2 * kMillisBias) return kUnbound;  // after the year 4199
    return make_id(Tag::DateTime, (static_cast<std::uint64_t>(millis) << 13) |
                                      (static_cast<std::uint64_t>(fraction_digits) << 11) |
                                      static_cast<std::uint64_t>(zone));
}

void append_date(std::string& out, TermId id) {
    append_civil(out, date_value(id).days);
    append_zone(out, id & 2047);
}

void append_datetime(std::string& out, TermId id) {
    const std::int64_t local = datetime_value(id).local_millis();
    const std::int64_t days = (local >= 0 ? local : local - 86'399'999) / 86'400'000;
    auto rest = static_cast<std::uint64_t>(local - days * 86'400'000);
    append_civil(out, days);
    const std::uint64_t fraction = rest % 1000;
    rest /= 1000;
    out += 'T';
    append_padded(out, rest / 3600, 2);
    out += ':';
    append_padded(out, rest / 60 % 60, 2);
    out += ':';
    append_padded(out, rest % 60, 2);
    if (const int digits = static_cast<int>((id >> 11) & 3); digits > 0) {
        out += '.';
        append_padded(out, digits == 1 ? fraction / 100 : digits == 2 ? fraction / 10 : fraction, digits);
    }
    append_zone(out, id & 2047);
}

}  // namespace penstock::inline_detail
