// Conversion of decimals to and from text and doubles.
#include <charconv>
#include <cmath>

#include "expr/decimal.hpp"

namespace penstock::expr {

ParsedNumber parse_decimal(std::string_view text, bool integer, Decimal& out) {
    std::size_t at = 0;
    bool negative = false;
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) negative = text[at++] == '-';
    UInt128 size = 0;
    int scale = 0;
    bool digits = false, point = false, full = false, too_large = false;
    for (; at < text.size(); ++at) {
        if (text[at] == '.' && !point && !integer) {
            point = true;
            continue;
        }
        if (text[at] < '0' || text[at] > '9') return ParsedNumber::Malformed;
        digits = true;
        if (full) continue;
        const UInt128 next = size * 10 + static_cast<unsigned>(text[at] - '0');
        full = size > static_cast<UInt128>(kMaxInt128) / 10 || next > static_cast<UInt128>(kMaxInt128) ||
               scale == Decimal::kMaxScale;
        too_large = too_large || (full && !point);
        if (full) continue;
        size = next;
        if (point) ++scale;
    }
    if (!digits) return ParsedNumber::Malformed;
    if (too_large) return ParsedNumber::TooLarge;
    const auto mantissa = static_cast<Int128>(size);
    out = {negative ? -mantissa : mantissa, static_cast<std::uint8_t>(scale)};
    return ParsedNumber::Ok;
}

namespace {

template <class Real>
Real to_real(Decimal value) {
    constexpr Int128 kExactMantissa = Int128{1} << 53;
    constexpr int kExactPower = 22;  // 10^22 is the largest power of ten that a double holds exactly
    if (sizeof(Real) == 8 && magnitude(value.mantissa) <= static_cast<UInt128>(kExactMantissa) &&
        value.scale <= kExactPower)
        return static_cast<Real>(static_cast<double>(value.mantissa) / static_cast<double>(power_of_ten(value.scale)));
    const std::string text = decimal_text(value);
    Real out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);  // correctly rounded; the range cannot overflow
    return out;
}

}  // namespace

double to_double(Decimal value) { return to_real<double>(value); }
float to_float(Decimal value) { return to_real<float>(value); }

std::optional<Decimal> from_double(double value) {
    if (!std::isfinite(value)) return std::nullopt;
    if (value == 0) return Decimal{};
    if (std::fabs(value) >= 0x1p127) return std::nullopt;
    if (std::trunc(value) == value) return Decimal{static_cast<Int128>(value), 0};
    // Not integral, so below 2^53: 60 fraction digits are more than fit a Decimal.
    char text[128];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 60);
    Decimal out;
    parse_decimal({text, end.ptr}, false, out);
    return without_trailing_zeros(out);
}

int compare(Decimal a, double value) {
    if (std::isinf(value)) return value > 0 ? -1 : 1;
    const double rounded = to_double(a);
    if (rounded != value) return rounded < value ? -1 : 1;  // rounding is monotone
    // A double adjacent to a decimal of 38 digits ends within 200 fraction digits, so both spellings are exact.
    char text[640];
    const auto end = std::to_chars(text, text + sizeof text, std::fabs(value), std::chars_format::fixed, 200);
    const std::string_view digits(text, static_cast<std::size_t>(end.ptr - text));
    const std::string other = decimal_text({a.mantissa < 0 ? -a.mantissa : a.mantissa, a.scale});
    const auto point = digits.find('.'), other_point = other.find('.');
    int order = 0;
    if (point != other_point) {
        order = point < other_point ? 1 : -1;
    } else {
        const std::string padded = other + std::string(digits.size() - other.size(), '0');
        order = padded.compare(digits);
    }
    if (order == 0) return 0;
    return (order > 0) == (value > 0) ? 1 : -1;
}

std::string integer_text(Int128 value) {
    char buffer[48];
    char* at = buffer + sizeof buffer;
    UInt128 rest = magnitude(value);
    do {
        *--at = static_cast<char>('0' + static_cast<int>(rest % 10));
        rest /= 10;
    } while (rest != 0);
    if (value < 0) *--at = '-';
    return {at, buffer + sizeof buffer};
}

std::string decimal_text(Decimal value, bool integral_plain) {
    value = without_trailing_zeros(value);
    std::string digits = integer_text(value.mantissa < 0 ? -value.mantissa : value.mantissa);
    if (value.scale == 0) {
        if (!integral_plain) digits += ".0";
    } else {
        const std::size_t scale = value.scale;
        if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
        digits.insert(digits.size() - scale, 1, '.');
    }
    if (value.mantissa < 0) digits.insert(digits.begin(), '-');
    return digits;
}

}  // namespace penstock::expr
