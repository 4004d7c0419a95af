// The inner loops of the N-Triples reader: the length of a run of plain text. "Plain" is ASCII that needs no further
// check. The caller examines the byte that ends a run.
#pragma once

#include <array>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace penstock {
namespace scan_detail {

constexpr std::array<bool, 256> plain_iri_bytes() {
    std::array<bool, 256> plain{};
    for (int c = 0x21; c < 0x80; ++c) plain[static_cast<std::size_t>(c)] = true;
    for (const char c : {'<', '>', '"', '{', '}', '|', '^', '`', '\\'}) plain[static_cast<unsigned char>(c)] = false;
    return plain;
}
inline constexpr std::array<bool, 256> kPlainIri = plain_iri_bytes();

constexpr bool is_plain_text(unsigned char c) { return c >= 0x0E && c < 0x80 && c != '"' && c != '\\'; }

}  // namespace scan_detail

/// First byte of [at, end) that must be escaped in an IRI, or is not ASCII.
inline const char* end_of_plain_iri(const char* at, const char* end) {
#ifdef __SSE2__
    // Signed comparison: bytes from 0x80 are negative, so one "less than" finds them and the control characters.
    const auto fill = [](int c) { return _mm_set1_epi8(static_cast<char>(c)); };
    for (; end - at >= 16; at += 16) {
        const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i without_2 = _mm_and_si128(v, fill(~2));
        __m128i stop = _mm_cmplt_epi8(v, fill(0x21));
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(without_2, fill('<')));                   // < >
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(without_2, fill('\\')));                  // \ ^
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(_mm_and_si128(v, fill(~1)), fill('|')));  // | }
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(v, fill('{')));
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(v, fill('`')));
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(v, fill('"')));
        const int mask = _mm_movemask_epi8(stop);
        if (mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
    }
#endif
    while (at != end && scan_detail::kPlainIri[static_cast<unsigned char>(*at)]) ++at;
    return at;
}

/// First byte of [at, end) that ends a quoted string, starts an escape, is a control character or is not ASCII.
inline const char* end_of_plain_text(const char* at, const char* end) {
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        __m128i stop = _mm_cmplt_epi8(v, _mm_set1_epi8(0x0E));
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        const int mask = _mm_movemask_epi8(stop);
        if (mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
    }
#endif
    while (at != end && scan_detail::is_plain_text(static_cast<unsigned char>(*at))) ++at;
    return at;
}

}  // namespace penstock
