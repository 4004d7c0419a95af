// Escapes of text in JSON, XML and Turtle. Most texts have no special character. Such texts are examined eight bytes at
// a time, and copied as a whole.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "answers/text_buffer.hpp"
#include "errors.hpp"

namespace penstock {

namespace escape_detail {

/// Bytes that are compared at once (vector extensions of GCC and Clang).
template <std::size_t bytes>
struct Block {
    using Type __attribute__((vector_size(bytes))) = unsigned char;
};

/// Skips blocks without special bytes.
template <class Escapes, std::size_t bytes>
const char* skip_plain(const char* at, const char* end) {
    for (; static_cast<std::size_t>(end - at) >= bytes; at += bytes) {
        typename Block<bytes>::Type block;
        std::memcpy(&block, at, bytes);
        const auto special = Escapes::special(block);
        std::uint64_t words[bytes / 8];
        std::memcpy(words, &special, bytes);
        std::uint64_t any = 0;
        for (const std::uint64_t word : words) any |= word;
        if (any != 0) break;
    }
    return at;
}

template <class Escapes>
const char* first_special(const char* at, const char* end) {
    at = skip_plain<Escapes, 16>(at, end);
    at = skip_plain<Escapes, 8>(at, end);
    while (at != end && !Escapes::special(static_cast<unsigned char>(*at))) ++at;
    return at;
}

}  // namespace escape_detail

/// Appends a text with the escapes of a syntax. `Escapes` has two functions. special() returns whether a byte possibly
/// needs an escape, for one byte or for a block of bytes. escape(out, at, end) appends the character at `at` and
/// returns the next position.
template <class Escapes>
void append_escaped(TextBuffer& out, std::string_view text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        const char* const special = escape_detail::first_special<Escapes>(at, end);
        out.append({at, static_cast<std::size_t>(special - at)});
        at = special == end ? end : Escapes::escape(out, special, end);
    }
}

/// Strings of JSON (RFC 8259 §7), with the shortest escapes.
struct JsonEscapes {
    template <class Bytes>
    static constexpr auto special(Bytes c) {
        return (c < 0x20) | (c == '"') | (c == '\\');
    }
    static const char* escape(TextBuffer& out, const char* at, const char*) {
        const auto c = static_cast<unsigned char>(*at);
        switch (c) {
            case '"':
                out.append("\\\"");
                break;
            case '\\':
                out.append("\\\\");
                break;
            case '\n':
                out.append("\\n");
                break;
            case '\r':
                out.append("\\r");
                break;
            case '\t':
                out.append("\\t");
                break;
            case '\f':
                out.append("\\f");
                break;
            case '\b':
                out.append("\\b");
                break;
            default: {
                constexpr std::string_view kHex = "0123456789abcdef";
                out.append("\\u00");
                out.append(kHex[c >> 4]);
                out.append(kHex[c & 15]);
            }
        }
        return at + 1;
    }
};

/// The same, with escapes for U+0085, U+2028 and U+2029. JSON allows these characters in strings, but some readers,
/// such as Python's `str.splitlines`, treat them as line ends.
struct JsonLineEscapes {
    static constexpr unsigned char kLeadOf0085 = 0xC2, kLeadOf2028 = 0xE2;
    template <class Bytes>
    static constexpr auto special(Bytes c) {
        return JsonEscapes::special(c) | (c == kLeadOf0085) | (c == kLeadOf2028);
    }
    static const char* escape(TextBuffer& out, const char* at, const char* end) {
        const std::string_view rest(at, static_cast<std::size_t>(end - at));
        if (rest.starts_with("\xC2\x85")) return out.append("\\u0085"), at + 2;
        if (rest.starts_with("\xE2\x80\xA8")) return out.append("\\u2028"), at + 3;
        if (rest.starts_with("\xE2\x80\xA9")) return out.append("\\u2029"), at + 3;
        if (JsonEscapes::special(static_cast<unsigned char>(*at))) return JsonEscapes::escape(out, at, end);
        out.append(*at);
        return at + 1;
    }
};

/// Text of XML 1.0 (§2.2, §2.4). DataError for a character that XML cannot contain.
struct XmlEscapes {
    static constexpr unsigned char kLeadOfFFFE = 0xEF;
    template <class Bytes>
    static constexpr auto special(Bytes c) {
        return (c < 0x20) | (c == '&') | (c == '<') | (c == '>') | (c == kLeadOfFFFE);
    }
    static const char* escape(TextBuffer& out, const char* at, const char* end) {
        switch (*at) {
            case '&':
                out.append("&amp;");
                break;
            case '<':
                out.append("&lt;");
                break;
            case '>':
                out.append("&gt;");
                break;
            case '\r':
                out.append("&#13;");
                break;
            default:
                check({at, static_cast<std::size_t>(end - at)});
                out.append(*at);
        }
        return at + 1;
    }
    /// DataError unless XML allows the first character of `text`.
    static void check(std::string_view text) {
        const auto c = static_cast<unsigned char>(text.front());
        if (text.starts_with("\xEF\xBF\xBE")) refuse(0xFFFE);
        if (text.starts_with("\xEF\xBF\xBF")) refuse(0xFFFF);
        if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') refuse(c);
    }
    [[noreturn]] static void refuse(unsigned code) {
        char number[8];
        std::snprintf(number, sizeof number, "%04X", code);
        throw DataError(std::string("a term of the answer has the character U+") + number +
                        ", which XML 1.0 cannot contain");
    }
};

/// Attribute values of XML between double quotes.
struct XmlAttributeEscapes {
    template <class Bytes>
    static constexpr auto special(Bytes c) {
        return XmlEscapes::special(c) | (c == '"');
    }
    static const char* escape(TextBuffer& out, const char* at, const char* end) {
        switch (*at) {
            case '"':
                out.append("&quot;");
                return at + 1;
            case '\n':
                out.append("&#10;");
                return at + 1;
            case '\t':
                out.append("&#9;");
                return at + 1;
            default:
                return XmlEscapes::escape(out, at, end);
        }
    }
};

/// Strings of N-Triples and Turtle between double quotes.
struct TurtleEscapes {
    template <class Bytes>
    static constexpr auto special(Bytes c) {
        return (c == '"') | (c == '\\') | (c == '\n') | (c == '\r') | (c == '\t');
    }
    static const char* escape(TextBuffer& out, const char* at, const char*) {
        out.append('\\');
        out.append(*at == '\n' ? 'n' : *at == '\r' ? 'r' : *at == '\t' ? 't' : *at);
        return at + 1;
    }
};

/// Quoted cells of CSV: quotes are doubled.
struct CsvEscapes {
    template <class Bytes>
    static constexpr auto special(Bytes c) {
        return c == '"';
    }
    static const char* escape(TextBuffer& out, const char* at, const char*) {
        out.append("\"\"");
        return at + 1;
    }
};

}  // namespace penstock
