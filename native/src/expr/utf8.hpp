// Positions in UTF-8 text, counted in code points. A malformed byte counts as one character or as part of the preceding
// one; no read is out of bounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace penstock::expr {

constexpr bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

inline std::size_t code_points(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

/// Byte offset of the code point with the given number (from 0), at most the text's size.
inline std::size_t code_point_offset(std::string_view text, std::size_t number) {
    std::size_t at = 0;
    for (; number > 0 && at < text.size(); --number)
        for (++at; at < text.size() && !starts_character(text[at]);) ++at;
    return at;
}

inline bool is_ascii(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace penstock::expr
