#include "expr/xsd_time.hpp"

#include <cstdio>

#include "rdf/inline_literal.hpp"

namespace penstock::expr {
namespace {

constexpr std::int64_t kMaxYear = 999'999'999;
constexpr int kFractionDigits = 18;

/// Reads a lexical form from left to right. After a failure all further reads fail.
class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {}

    bool ok() const { return ok_; }
    bool done() const { return ok_ && at_ == text_.size(); }
    bool peek(char c) const { return at_ < text_.size() && text_[at_] == c; }
    bool take(char c) {
        if (!peek(c)) return false;
        ++at_;
        return true;
    }
    void expect(char c) { ok_ = take(c) && ok_; }
    bool digit() const { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; }

    /// Exactly two digits, with a value in [0, most].
    int pair(int most) {
        const std::int64_t value = number(2, 2);
        ok_ = ok_ && value <= most;
        return static_cast<int>(value);
    }
    std::int64_t number(std::size_t least, std::size_t most) {
        std::int64_t value = 0;
        std::size_t digits = 0;
        for (; digit() && digits < most; ++digits) value = value * 10 + (text_[at_++] - '0');
        ok_ = ok_ && digits >= least && !(digit() && digits == most && most > 2);
        return value;
    }
    std::int64_t year() {
        const bool negative = take('-');
        const bool leading_zero = peek('0');
        const std::size_t from = at_;
        const std::int64_t value = number(4, 9);
        ok_ = ok_ && !(leading_zero && at_ - from > 4);
        return negative ? -value : value;
    }
    /// The digits after a decimal point, in attoseconds.
    Int128 fraction() {
        Int128 value = 0;
        int digits = 0;
        ok_ = ok_ && digit();
        for (; digit(); ++at_, ++digits) {
            if (digits < kFractionDigits)
                value = value * 10 + (text_[at_] - '0');
            else
                ok_ = ok_ && text_[at_] == '0';
        }
        for (; digits < kFractionDigits; ++digits) value *= 10;
        return value;
    }
    std::int16_t timezone() {
        if (at_ == text_.size()) return kNoTimezone;
        if (take('Z')) return 0;
        const bool negative = take('-');
        if (!negative) expect('+');
        const int hours = pair(14);
        expect(':');
        const int minutes = pair(hours == 14 ? 0 : 59);
        return static_cast<std::int16_t>(negative ? -(hours * 60 + minutes) : hours * 60 + minutes);
    }
    Int128 date() {
        const std::int64_t year = this->year();
        expect('-');
        const int month = pair(12);
        expect('-');
        const int day = pair(31);
        if (!ok_ || month == 0 || day == 0 || day > days_in_month(static_cast<int>(year), month)) {
            ok_ = false;
            return 0;
        }
        return days_from_civil({static_cast<int>(year), month, day}) * kDay;
    }
    Int128 time() {
        const int hour = pair(24);
        expect(':');
        const int minute = pair(59);
        expect(':');
        Int128 time = hour * kHour + minute * kMinute + pair(59) * kSecond;
        if (take('.')) time += fraction();
        ok_ = ok_ && time <= kDay;  // 24:00:00 is the end of the day
        return time;
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
    bool ok_ = true;
};

constexpr Int128 floor_divide(Int128 a, Int128 b) { return a / b - (a % b < 0 ? 1 : 0); }

std::partial_ordering order(Int128 a, Int128 b) {
    return a < b   ? std::partial_ordering::less
           : a > b ? std::partial_ordering::greater
                   : std::partial_ordering::equivalent;
}

std::string two_digits(int value) {
    return {static_cast<char>('0' + value / 10 % 10), static_cast<char>('0' + value % 10)};
}

std::string seconds_text(Int128 seconds) { return decimal_text({seconds, kFractionDigits}, true); }

std::string date_part(Moment moment) {
    const DateFields fields = date_fields(moment);
    const std::int64_t size = fields.year < 0 ? -fields.year : fields.year;
    std::string year = std::to_string(size);
    if (year.size() < 4) year.insert(0, 4 - year.size(), '0');
    if (fields.year < 0) year.insert(year.begin(), '-');
    return year + "-" + two_digits(fields.month) + "-" + two_digits(fields.day);
}

std::string time_part(Moment moment) {
    const TimeFields fields = time_fields(moment);
    return two_digits(fields.hour) + ":" + two_digits(fields.minute) + ":" + (fields.second < 10 * kSecond ? "0" : "") +
           seconds_text(fields.second);
}

std::string offset_part(std::int16_t timezone) {
    if (timezone == kNoTimezone) return "";
    if (timezone == 0) return "Z";
    const int size = timezone < 0 ? -timezone : timezone;
    return std::string(1, timezone < 0 ? '-' : '+') + two_digits(size / 60) + ":" + two_digits(size % 60);
}

}  // namespace

bool parse_date_time(std::string_view text, Moment& out) {
    Scanner scan(text);
    const Int128 date = scan.date();
    scan.expect('T');
    const Int128 time = scan.time();
    out = {date + time, scan.timezone()};
    return scan.done();
}

bool parse_date(std::string_view text, Moment& out) {
    Scanner scan(text);
    const Int128 date = scan.date();
    out = {date, scan.timezone()};
    return scan.done();
}

bool parse_time(std::string_view text, Moment& out) {
    Scanner scan(text);
    const Int128 time = scan.time();
    out = {time % kDay, scan.timezone()};
    return scan.done();
}

bool parse_duration(std::string_view text, DurationKind kind, Duration& out) {
    constexpr std::size_t kDigits = 14;  // a field with more digits remains opaque; 10^14 days fit 128 bits
    constexpr std::int64_t kMaxMonths = kMaxYear * 2;
    Scanner scan(text);
    const bool negative = scan.take('-');
    scan.expect('P');
    Int128 months = 0, seconds = 0;
    bool any = false, in_time = false;
    int last = -1;  // fields are in order, each at most once
    while (scan.ok() && !scan.done()) {
        if (!in_time && scan.take('T')) {
            in_time = true;
            any = false;
            continue;
        }
        const Int128 value = scan.number(1, kDigits);
        Int128 fraction = 0;
        const bool has_fraction = scan.take('.');
        if (has_fraction) fraction = scan.fraction();
        int field = 6;
        if (!in_time)
            field = scan.take('Y') ? 0 : scan.take('M') ? 1 : scan.take('D') ? 2 : 6;
        else
            field = scan.take('H') ? 3 : scan.take('M') ? 4 : scan.take('S') ? 5 : 6;
        if (field == 6 || field <= last || (has_fraction && field != 5)) return false;
        if ((kind == DurationKind::DayTime && field < 2) || (kind == DurationKind::YearMonth && field > 1))
            return false;
        constexpr Int128 kUnits[] = {12, 1, kDay, kHour, kMinute, kSecond};
        (field < 2 ? months : seconds) += value * kUnits[field] + fraction;
        last = field;
        any = true;
    }
    if (!scan.done() || !any || months > kMaxMonths || seconds > Int128{kMaxYear} * 366 * kDay) return false;
    out = {static_cast<std::int32_t>(negative ? -months : months), negative ? -seconds : seconds};
    return true;
}

std::partial_ordering compare(Moment a, Moment b) {
    constexpr Int128 kWidest = 14 * kHour;
    if (a.has_timezone() == b.has_timezone()) return order(a.utc(), b.utc());
    if (a.utc() < b.utc() - kWidest) return std::partial_ordering::less;
    if (a.utc() > b.utc() + kWidest) return std::partial_ordering::greater;
    return std::partial_ordering::unordered;
}

std::partial_ordering compare(Duration a, Duration b) {
    if (a.months == b.months) return order(a.seconds, b.seconds);
    const bool by_months = a.seconds == b.seconds;
    return by_months ? order(a.months, b.months) : std::partial_ordering::unordered;
}

DateFields date_fields(Moment moment) {
    const CivilDate date = civil_from_days(static_cast<std::int64_t>(floor_divide(moment.local, kDay)));
    return {date.year, date.month, date.day};
}

Int128 time_of_day(Moment moment) { return moment.local - floor_divide(moment.local, kDay) * kDay; }

TimeFields time_fields(Moment moment) {
    const Int128 time = time_of_day(moment);
    return {static_cast<int>(time / kHour), static_cast<int>(time % kHour / kMinute), time % kMinute};
}

std::string date_time_text(Moment moment) {
    return date_part(moment) + "T" + time_part(moment) + offset_part(moment.timezone);
}
std::string date_text(Moment moment) { return date_part(moment) + offset_part(moment.timezone); }
std::string time_text(Moment moment) { return time_part(moment) + offset_part(moment.timezone); }
std::string timezone_text(std::int16_t timezone) { return offset_part(timezone); }

std::string duration_text(Duration duration, DurationKind kind) {
    const bool negative = duration.months < 0 || duration.seconds < 0;
    const Int128 months = negative ? -Int128{duration.months} : Int128{duration.months};
    const Int128 seconds = negative ? -duration.seconds : duration.seconds;
    if (months == 0 && seconds == 0) return kind == DurationKind::YearMonth ? "P0M" : "PT0S";
    std::string out = negative ? "-P" : "P";
    const auto field = [&out](Int128 value, char unit) {
        if (value != 0) out += integer_text(value) + unit;
    };
    field(months / 12, 'Y');
    field(months % 12, 'M');
    field(seconds / kDay, 'D');
    if (seconds % kDay == 0) return out;
    out += 'T';
    field(seconds % kDay / kHour, 'H');
    field(seconds % kHour / kMinute, 'M');
    if (seconds % kMinute != 0) out += seconds_text(seconds % kMinute) + "S";
    return out;
}

}  // namespace penstock::expr
