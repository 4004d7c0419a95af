#include "mapping/event_time.hpp"

#include <chrono>

namespace penstock::mapping {
namespace {

constexpr std::size_t kMaxWhole = 15;     // digits
constexpr std::size_t kMaxFraction = 12;  // digits
constexpr std::int64_t kDayMs = 86'400'000, kHourMs = 3'600'000, kMinuteMs = 60'000;

[[noreturn]] void decline() { throw Declined{}; }

class Cursor {
public:
    explicit Cursor(std::string_view text) : text_(text) {}

    bool done() const { return at_ == text_.size(); }
    char peek() const { return done() ? '\0' : text_[at_]; }
    bool skip(char c) {
        if (peek() != c || done()) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!skip(c)) decline();
    }
    /// A number of exactly that many digits, which is at most `most`.
    std::int64_t number(int digits, std::int64_t most) {
        std::int64_t value = 0;
        for (int i = 0; i < digits; ++i) value = 10 * value + digit();
        if (value > most) decline();
        return value;
    }
    bool at_digit() const { return peek() >= '0' && peek() <= '9'; }
    std::int64_t digit() {
        if (!at_digit()) decline();
        return text_[at_++] - '0';
    }
    /// The first three of at most kMaxFraction digits, as thousandths.
    std::int64_t thousandths() {
        std::int64_t value = 0;
        std::size_t count = 0;
        for (; at_digit(); ++count) {
            const std::int64_t next = digit();
            if (count < 3) value = 10 * value + next;
        }
        if (count == 0 || count > kMaxFraction) decline();
        for (; count < 3; ++count) value *= 10;
        return value;
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::int64_t iso_time(std::string_view text) {
    Cursor at(text);
    const auto year = static_cast<int>(at.number(4, 9999));
    at.expect('-');
    const auto month = static_cast<unsigned>(at.number(2, 12));
    at.expect('-');
    const auto day = static_cast<unsigned>(at.number(2, 31));
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
    if (year == 0 || !date.ok()) decline();
    if (!at.skip('T') && !at.skip('t')) at.expect(' ');
    std::int64_t ms = std::chrono::sys_days(date).time_since_epoch().count() * kDayMs;
    ms += at.number(2, 23) * kHourMs;
    at.expect(':');
    ms += at.number(2, 59) * kMinuteMs;
    if (at.skip(':')) {
        ms += at.number(2, 59) * 1000;
        if (at.skip('.')) ms += at.thousandths();
    }
    if (at.skip('Z') || at.skip('z') || at.done()) {
        if (!at.done()) decline();
        return ms;
    }
    const bool west = at.skip('-');
    if (!west) at.expect('+');
    std::int64_t offset = at.number(2, 23) * kHourMs;
    at.skip(':');
    offset += at.number(2, 59) * kMinuteMs;
    if (!at.done()) decline();
    return west ? ms + offset : ms - offset;
}

std::int64_t epoch_time(std::string_view text, TimeUnit unit) {
    Cursor at(text);
    std::int64_t whole = 0;
    std::size_t count = 0;
    for (; at.at_digit() && count <= kMaxWhole; ++count) whole = 10 * whole + at.digit();
    if (count == 0 || count > kMaxWhole) decline();
    const std::int64_t thousandths = at.skip('.') ? at.thousandths() : 0;
    if (!at.done()) decline();
    if (unit == TimeUnit::Seconds) return whole * 1000 + thousandths;
    return unit == TimeUnit::Microseconds ? whole / 1000 : whole;
}

}  // namespace penstock::mapping
