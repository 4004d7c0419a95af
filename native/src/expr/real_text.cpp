#include "expr/real_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace penstock::expr {
namespace {

/// The approximate magnitude of the exponent: from_chars reports a range error without its direction.
template <class Real>
Real out_of_range(std::string_view text, bool negative) {
    // Above the largest or below the smallest: the position of the first significant digit decides.
    long long exponent = 0;
    const std::size_t e = text.find_first_of("eE");
    if (e != std::string_view::npos) {
        std::string_view digits = text.substr(e + 1);
        if (digits.starts_with('+')) digits.remove_prefix(1);
        const auto got = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
        if (got.ec == std::errc::result_out_of_range)
            exponent = digits.starts_with('-') ? std::numeric_limits<int>::min() : std::numeric_limits<int>::max();
    }
    const std::string_view mantissa = text.substr(0, e);
    const std::size_t first = mantissa.find_first_of("123456789");
    if (first == std::string_view::npos) return negative ? Real{-0.0} : Real{0};
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    const long long position = static_cast<long long>(point) - static_cast<long long>(first);
    const Real size = exponent + position > 0 ? std::numeric_limits<Real>::infinity() : Real{0};
    return negative ? -size : size;
}

bool well_formed(std::string_view text) {
    std::size_t at = 0;
    bool digits = false;
    const auto run = [&] {
        const std::size_t from = at;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
        return at > from;
    };
    digits = run();
    if (at < text.size() && text[at] == '.') {
        ++at;
        digits = run() || digits;
    }
    if (!digits) return false;
    if (at == text.size()) return true;
    if (text[at] != 'e' && text[at] != 'E') return false;
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    return run() && at == text.size();
}

template <class Real>
bool parse(std::string_view text, Real& out) {
    if (text == "NaN") return out = std::numeric_limits<Real>::quiet_NaN(), true;
    bool negative = false;
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
        negative = text[0] == '-';
        text.remove_prefix(1);
    }
    if (text == "INF") {
        out = negative ? -std::numeric_limits<Real>::infinity() : std::numeric_limits<Real>::infinity();
        return true;
    }
    if (!well_formed(text)) return false;
    Real size = 0;
    const auto got = std::from_chars(text.data(), text.data() + text.size(), size);
    out = got.ec == std::errc::result_out_of_range ? out_of_range<Real>(text, negative) : (negative ? -size : size);
    return true;
}

std::size_t put(std::string_view text, char* out) {
    std::copy(text.begin(), text.end(), out);
    return text.size();
}

/// Converts the output of to_chars, as "-1.5e+300", to the canonical form, as "-1.5E300", "1.0E1".
template <class Real>
std::size_t write(Real value, char* out) {
    if (std::isnan(value)) return put("NaN", out);
    if (std::isinf(value)) return put(value > 0 ? "INF" : "-INF", out);
    if (value == 0) return put(std::signbit(value) ? "-0.0E0" : "0.0E0", out);
    const char* const end = std::to_chars(out, out + kRealText, value, std::chars_format::scientific).ptr;
    char exponent[8];
    const char* e = std::find(out, const_cast<char*>(end), 'e');
    const bool negative = e[1] == '-';
    const char* digits = e + 2;
    while (digits + 1 < end && *digits == '0') ++digits;
    const std::size_t length = put({digits, static_cast<std::size_t>(end - digits)}, exponent);
    char* at = out + (e - out);
    if (std::find(out, at, '.') == at) at += put(".0", at);
    *at++ = 'E';
    if (negative) *at++ = '-';
    at += put({exponent, length}, at);
    return static_cast<std::size_t>(at - out);
}

template <class Real>
std::string canonical(Real value) {
    char buffer[kRealText];
    return {buffer, write(value, buffer)};
}

template <class Real>
std::string cast_text(Real value) {
    const Real size = std::fabs(value);
    if (value == 0) return std::signbit(value) ? "-0" : "0";
    if (!(size >= Real(1e-6) && size < Real(1e6))) return canonical(value);
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
    return {buffer, end.ptr};
}

}  // namespace

bool parse_real(std::string_view text, double& out) { return parse(text, out); }
bool parse_real(std::string_view text, float& out) { return parse(text, out); }
std::size_t write_real(double value, char* out) { return write(value, out); }
std::size_t write_real(float value, char* out) { return write(value, out); }
std::string real_text(double value) { return canonical(value); }
std::string real_text(float value) { return canonical(value); }
std::string real_cast_text(double value) { return cast_text(value); }
std::string real_cast_text(float value) { return cast_text(value); }

}  // namespace penstock::expr
