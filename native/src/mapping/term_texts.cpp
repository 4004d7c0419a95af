#include "mapping/term_texts.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "rdf/iri.hpp"
#include "rdf/utf8.hpp"

namespace penstock::mapping {
namespace {

constexpr std::array<bool, 256> plain_bytes() {
    std::array<bool, 256> plain{};
    for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"))
        plain[static_cast<unsigned char>(c)] = true;
    return plain;
}
constexpr std::array<bool, 256> kUnreserved = plain_bytes();

bool is_unreserved(char c) { return kUnreserved[static_cast<unsigned char>(c)]; }

bool is_label_byte(char c) { return is_unreserved(c) && c != '-' && c != '.' && c != '_' && c != '~'; }

void append_hexadecimal(std::string& out, char byte, const char* digits) {
    out += digits[static_cast<unsigned char>(byte) >> 4];
    out += digits[static_cast<unsigned char>(byte) & 15];
}

}  // namespace

void append_encoded(std::string& out, std::string_view text, bool ascii) {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        const char* const plain = std::find_if_not(at, end, is_unreserved);
        out.append(at, plain);
        at = plain;
        if (at == end) return;
        const char* next = at;
        const char32_t c = next_code_point(next, end);
        if (c == kInvalidCodePoint) next = at + 1;
        if (!ascii && c >= 0x80 && c != kInvalidCodePoint && is_iri_character(c)) {
            out.append(at, next);
            at = next;
            continue;
        }
        for (; at != next; ++at) {
            out += '%';
            append_hexadecimal(out, *at, "0123456789ABCDEF");
        }
    }
}

void append_label(std::string& out, std::string_view text) {
    if (!text.empty() && std::all_of(text.begin(), text.end(), is_label_byte)) {
        out += 'b';
        out += text;
        return;
    }
    out += 'h';
    for (const char byte : text) append_hexadecimal(out, byte, "0123456789abcdef");
}

bool append_canonical_double(std::string& out, std::string_view number) {
    double value = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    if (read.ec != std::errc{} || read.ptr != number.data() + number.size()) return false;
    std::array<char, 32> digits;
    const auto written =
        std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::scientific);
    const std::string_view text(digits.data(), static_cast<std::size_t>(written.ptr - digits.data()));
    const std::size_t exponent = text.find('e');
    const std::string_view mantissa = text.substr(0, exponent);
    out += mantissa;
    if (mantissa.find('.') == std::string_view::npos) out += ".0";
    out += 'E';
    if (text[exponent + 1] == '-') out += '-';
    std::string_view power = text.substr(exponent + 2);
    while (power.size() > 1 && power[0] == '0') power.remove_prefix(1);
    out += power;
    return true;
}

}  // namespace penstock::mapping
