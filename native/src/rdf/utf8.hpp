// Strict UTF-8 (RFC 3629): rejects overlong forms, surrogates and code points above U+10FFFF.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

inline constexpr char32_t kInvalidCodePoint = 0xFFFFFFFF;

/// Reads one code point and advances `at`. Returns kInvalidCodePoint, with `at` unchanged, if the bytes are not UTF-8.
inline char32_t next_code_point(const char*& at, const char* end) {
    const auto byte = [&](int i) { return static_cast<unsigned char>(at[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) {
        ++at;
        return lead;
    }
    const int length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || end - at < length) return kInvalidCodePoint;
    char32_t code = lead & (0xFF >> (length + 1));
    for (int i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return kInvalidCodePoint;
        code = (code << 6) | (byte(i) & 0x3F);
    }
    constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return kInvalidCodePoint;
    at += length;
    return code;
}

/// Appends a code point, which must be valid.
inline void append_utf8(std::string& out, char32_t code) {
    const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
        put(0xC0 | (code >> 6));
    } else if (code < 0x10000) {
        put(0xE0 | (code >> 12));
        put(0x80 | ((code >> 6) & 0x3F));
    } else {
        put(0xF0 | (code >> 18));
        put(0x80 | ((code >> 12) & 0x3F));
        put(0x80 | ((code >> 6) & 0x3F));
    }
    put(0x80 | (code & 0x3F));
}

}  // namespace penstock
