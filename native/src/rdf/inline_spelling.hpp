// Reading and writing the spelling of a literal, for the layouts of inline_literal.hpp.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline_detail {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads the spelling from left to right. A reader that finds no match returns false, or stops.
struct Cursor {
    const char* at;
    const char* end;

    explicit Cursor(std::string_view text) : at(text.data()), end(text.data() + text.size()) {}
    bool done() const { return at == end; }
    bool take(char c) {
        if (at == end || *at != c) return false;
        ++at;
        return true;
    }
    /// Reads exactly `n` digits.
    bool number(int n, int& value) {
        value = 0;
        for (; n > 0; --n, ++at) {
            if (at == end || !is_digit(*at)) return false;
            value = value * 10 + (*at - '0');
        }
        return true;
    }
    /// Reads all digits that follow, at most 18, and appends them to `value`. Returns their number, or -1 for too many.
    int digits(std::uint64_t& value) {
        const char* begin = at;
        for (; at != end && is_digit(*at); ++at) {
            if (at - begin == 18) return -1;
            value = value * 10 + static_cast<std::uint64_t>(*at - '0');
        }
        return static_cast<int>(at - begin);
    }
};

/// Appends `value` with at least `width` digits.
inline void append_padded(std::string& out, std::uint64_t value, int width) {
    std::array<char, 24> buffer;
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    const int length = static_cast<int>(result.ptr - buffer.data());
    if (length < width) out.append(static_cast<std::size_t>(width - length), '0');
    out.append(buffer.data(), result.ptr);
}

}  // namespace penstock::inline_detail
