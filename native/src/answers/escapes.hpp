// Escapes of text in JSON, XML and Turtle. Most texts have no special character: they are examined eight bytes at a
// time and copied as a whole.
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
constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kTops = 0x8080808080808080;
/// Not 0 if a byte of the word is below `limit` (at most 128). See Warren, Hacker's Delight, §6-1.
constexpr std::uint64_t below(std::uint64_t word, std::uint64_t limit) {
    return (word - kOnes * limit) & ~word & kTops;
}
/// Not 0 if a byte of the word is `byte`.
constexpr std::uint64_t has(std::uint64_t word, std::uint64_t byte) { return below(word ^ (kOnes * byte), 1); }

template <class Escapes>
const char* first_special(const char* at, const char* end) {
    const auto scan = [&](const char* to) {
        while (at != to && !Escapes::special(static_cast<unsigned char>(*at))) ++at;
        return at;
    };
    while (end - at >= 8) {
        std::uint64_t word;
        std::memcpy(&word, at, 8);
        if (Escapes::any(word) != 0) return scan(end);
        at += 8;
    }
    return scan(end);
}
}  // namespace escape_detail

/// Appends a text with the escapes of a syntax. `Escapes`: special(byte), whether a byte may need an escape; any(word),
/// the same for eight bytes; escape(out, at, end), which appends the character at `at` and returns the next position.
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
    static constexpr bool special(unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; }
    static constexpr std::uint64_t any(std::uint64_t word) {
        using namespace escape_detail;
        return below(word, 0x20) | has(word, '"') | has(word, '\\');
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

/// The same, with escapes for U+0085, U+2028 and U+2029. JSON allows them in strings, but some readers, such as
/// Python's `str.splitlines`, end a line there.
struct JsonLineEscapes {
    static constexpr unsigned char kLeadOf0085 = 0xC2, kLeadOf2028 = 0xE2;
    static constexpr bool special(unsigned char c) {
        return JsonEscapes::special(c) || c == kLeadOf0085 || c == kLeadOf2028;
    }
    static constexpr std::uint64_t any(std::uint64_t word) {
        using namespace escape_detail;
        return JsonEscapes::any(word) | has(word, kLeadOf0085) | has(word, kLeadOf2028);
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
    static constexpr bool special(unsigned char c) {
        return c < 0x20 || c == '&' || c == '<' || c == '>' || c == kLeadOfFFFE;
    }
    static constexpr std::uint64_t any(std::uint64_t word) {
        using namespace escape_detail;
        return below(word, 0x20) | has(word, '&') | has(word, '<') | has(word, '>') | has(word, kLeadOfFFFE);
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
    static constexpr bool special(unsigned char c) { return XmlEscapes::special(c) || c == '"'; }
    static constexpr std::uint64_t any(std::uint64_t word) {
        return XmlEscapes::any(word) | escape_detail::has(word, '"');
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
    static constexpr bool special(unsigned char c) {
        return c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t';
    }
    static constexpr std::uint64_t any(std::uint64_t word) {
        using namespace escape_detail;
        return below(word, 0x20) | has(word, '"') | has(word, '\\');
    }
    static const char* escape(TextBuffer& out, const char* at, const char*) {
        out.append('\\');
        out.append(*at == '\n' ? 'n' : *at == '\r' ? 'r' : *at == '\t' ? 't' : *at);
        return at + 1;
    }
};

/// Quoted cells of CSV: quotes are doubled.
struct CsvEscapes {
    static constexpr bool special(unsigned char c) { return c == '"'; }
    static constexpr std::uint64_t any(std::uint64_t word) { return escape_detail::has(word, '"'); }
    static const char* escape(TextBuffer& out, const char* at, const char*) {
        out.append("\"\"");
        return at + 1;
    }
};

}  // namespace penstock
