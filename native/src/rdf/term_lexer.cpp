#include "rdf/term_lexer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "rdf/iri.hpp"
#include "rdf/language_tag.hpp"
#include "rdf/scan.hpp"
#include "rdf/utf8.hpp"

namespace penstock {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Range {
    char32_t first;
    char32_t last;
};
template <std::size_t N>
bool in_ranges(char32_t c, const std::array<Range, N>& ranges) {
    return std::any_of(ranges.begin(), ranges.end(), [c](Range r) { return c >= r.first && c <= r.last; });
}

/// PN_CHARS_U or a digit: the first character of a blank node's label.
bool begins_label(char32_t c) {
    constexpr std::array<Range, 12> kBase = {{{0xC0, 0xD6},
                                              {0xD8, 0xF6},
                                              {0xF8, 0x2FF},
                                              {0x370, 0x37D},
                                              {0x37F, 0x1FFF},
                                              {0x200C, 0x200D},
                                              {0x2070, 0x218F},
                                              {0x2C00, 0x2FEF},
                                              {0x3001, 0xD7FF},
                                              {0xF900, 0xFDCF},
                                              {0xFDF0, 0xFFFD},
                                              {0x10000, 0xEFFFF}}};
    if (c < 0x80) return is_letter(static_cast<char>(c)) || is_digit(static_cast<char>(c)) || c == '_';
    return in_ranges(c, kBase);
}
/// PN_CHARS.
bool continues_label(char32_t c) {
    return begins_label(c) || c == '-' || c == 0xB7 || (c >= 0x300 && c <= 0x36F) || c == 0x203F || c == 0x2040;
}

std::string show(const char* at, const char* end) {
    if (at == end) return "the end";
    if (*at == '\n' || *at == '\r') return "the end of the line";
    const char* next = at;
    if (next_code_point(next, end) == kInvalidCodePoint) return "bytes that are no UTF-8";
    if (static_cast<unsigned char>(*at) < 0x20) return "a control character";
    return std::string("'").append(at, next).append("'");
}

}  // namespace

void TermLexer::skip_line_end() {
    if (at_ == end_) return;
    const bool carriage_return = *at_ == '\r';
    ++at_;
    if (carriage_return && at_ != end_ && *at_ == '\n') ++at_;
}

void TermLexer::skip_rest_of_line() {
    at_ = std::find_if(at_, end_, [](char c) { return c == '\n' || c == '\r'; });
}

void TermLexer::expect(char c, const char* what) {
    if (at_ == end_ || *at_ != c) fail_expected(what);
    ++at_;
}

void TermLexer::fail_expected(const char* what) const {
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    if (rest.starts_with("<<") || rest.starts_with("{|"))
        fail(at_, "triple terms and quoted triples (RDF-star, RDF 1.2) are not supported");
    if (rest.starts_with("VERSION") || rest.starts_with("@version"))
        fail(at_, "version directives (RDF 1.2) are not supported");
    fail(at_, "expected " + std::string(what) + ", found " + show(at_, end_));
}

void TermLexer::check_length(const char* from, std::size_t bytes) const {
    if (bytes > max_term_bytes_)
        fail(from, "a term longer than the limit of " + std::to_string(max_term_bytes_) + " bytes");
}

// ---------------------------------------------------------------- escapes and characters
char32_t TermLexer::hexadecimal(const char* from, int digits) {
    char32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
        const char c = peek();
        const int value = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (value < 0)
            fail(from, "an escape \\" + std::string(digits == 4 ? "u" : "U") + " needs " + std::to_string(digits) +
                           " hexadecimal digits");
        code = (code << 4) | static_cast<char32_t>(value);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) fail(from, "an escape that names no character");
    return code;
}

/// At a backslash; \uXXXX or \UXXXXXXXX.
char32_t TermLexer::numeric_escape() {
    const char* from = at_++;
    switch (peek()) {
        case 'u':
            ++at_;
            return hexadecimal(from, 4);
        case 'U':
            ++at_;
            return hexadecimal(from, 8);
        default:
            fail(from, "only \\u and \\U escapes may stand in an IRI");
    }
}

void TermLexer::string_escape(std::string& out) {
    const char* from = at_;
    const char c = end_ - at_ > 1 ? at_[1] : '\0';
    constexpr std::string_view kNames = "tbnrf\"'\\";
    constexpr std::string_view kValues = "\t\b\n\r\f\"'\\";
    if (const std::size_t i = kNames.find(c); i != std::string_view::npos) {
        out += kValues[i];
        at_ += 2;
    } else if (c == 'u' || c == 'U') {
        append_utf8(out, numeric_escape());
    } else {
        fail(from, "an unknown escape");
    }
}

/// Advances over one character beyond ASCII.
void TermLexer::code_point() {
    if (next_code_point(at_, end_) == kInvalidCodePoint) fail(at_, "bytes that are no UTF-8");
}

// ---------------------------------------------------------------- terms
void TermLexer::check(std::string_view iri, const char* from) const {
    if (const char* fault = iri_fault(iri)) fail(from, std::string("not an absolute IRI: ") + fault);
}

std::string_view TermLexer::iri() {
    const char* open = at_;
    if (end_ - at_ > 1 && at_[1] == '<') fail_expected("an IRI");
    expect('<', "an IRI");
    const char* from = at_;
    std::string* resolved = nullptr;
    for (;;) {
        const char* run = at_;
        at_ = end_of_plain_iri(at_, end_);
        if (resolved != nullptr) resolved->append(run, at_);
        check_length(open, static_cast<std::size_t>(at_ - from));
        if (at_ == end_) fail(open, "an IRI without its closing '>'");
        if (*at_ == '>') break;
        if (*at_ == '\\') {
            const char* escape = at_;
            if (resolved == nullptr) resolved = &resolved_.emplace_back(from, at_);
            const char32_t code = numeric_escape();
            if (code < 0x80 && !scan_detail::kPlainIri[code]) fail(escape, "a character that may not stand in an IRI");
            append_utf8(*resolved, code);
        } else if (static_cast<unsigned char>(*at_) >= 0x80) {
            const char* character = at_;
            code_point();
            if (resolved != nullptr) resolved->append(character, at_);
        } else if (*at_ == '\n' || *at_ == '\r') {
            fail(open, "an IRI without its closing '>'");
        } else {
            fail(at_, show(at_, end_) + " may not stand in an IRI");
        }
    }
    const std::string_view text = resolved != nullptr ? std::string_view(*resolved)
                                                      : std::string_view(from, static_cast<std::size_t>(at_ - from));
    ++at_;
    return text;
}

std::string_view TermLexer::blank_label() {
    const char* open = at_;
    expect('_', "a blank node");
    expect(':', "a colon after '_'");
    const char* from = at_;
    const char* label_end = from;  // a label may contain dots, but not end with one
    while (at_ != end_) {
        const char* character = at_;
        const char32_t c = next_code_point(at_, end_);
        if (c == kInvalidCodePoint) fail(at_, "bytes that are no UTF-8");
        if (c == '.' && character != from) continue;
        if (!(character == from ? begins_label(c) : continues_label(c))) break;
        label_end = at_;
    }
    at_ = label_end;
    if (label_end == from) fail_expected("a blank node's label");
    check_length(open, static_cast<std::size_t>(label_end - from));
    return {from, static_cast<std::size_t>(label_end - from)};
}

/// At the opening quote: returns the text and advances past the closing one.
std::string_view TermLexer::text() {
    const char* open = at_++;
    const char* from = at_;
    std::string* resolved = nullptr;
    for (;;) {
        const char* run = at_;
        at_ = end_of_plain_text(at_, end_);
        if (resolved != nullptr) resolved->append(run, at_);
        check_length(open, static_cast<std::size_t>(at_ - from));
        if (at_ == end_ || *at_ == '\n' || *at_ == '\r') fail(open, "a string without its closing '\"'");
        if (*at_ == '"') break;
        if (*at_ == '\\') {
            if (resolved == nullptr) resolved = &resolved_.emplace_back(from, at_);
            string_escape(*resolved);
            continue;
        }
        const char* character = at_;
        code_point();  // or a control character, which a string may contain
        if (resolved != nullptr) resolved->append(character, at_);
    }
    const char* close = at_++;
    return resolved != nullptr ? std::string_view(*resolved)
                               : std::string_view(from, static_cast<std::size_t>(close - from));
}

/// After the '@'. Checks the grammar's LANGTAG first, then BCP 47.
std::string_view TermLexer::language_tag() {
    const char* from = at_;
    while (at_ != end_ && (is_letter(*at_) || (at_ != from && (is_digit(*at_) || *at_ == '-')))) ++at_;
    const std::string_view tag(from, static_cast<std::size_t>(at_ - from));
    if (tag.empty()) fail_expected("a language tag");
    if (tag.find("--") != std::string_view::npos)
        fail(from, "base directions of language tags (RDF 1.2) are not supported");
    if (!is_language_tag(tag)) fail(from, "a language tag that is not well-formed (BCP 47)");
    return tag;
}

TermView TermLexer::literal() {
    TermView term{Kind::Literal, text(), kXsdString, {}};
    skip_blanks();  // blanks are permitted between terminals
    if (peek() == '@') {
        ++at_;
        term.datatype = kRdfLangString;
        term.lang = language_tag();
    } else if (peek() == '^') {
        ++at_;
        expect('^', "'^^' and a datatype");
        skip_blanks();
        const char* from = at_;
        term.datatype = iri();
        if (term.datatype != checked_datatype_) {
            check(term.datatype, from);
            if (term.datatype == kRdfLangString) fail(from, "rdf:langString needs a language tag");
            if (in_document(term.datatype)) checked_datatype_ = term.datatype;
        }
    }
    return term;
}

std::int64_t TermLexer::integer() {
    const char* from = at_;
    if (peek() == '+') ++at_;
    std::int64_t value = 0;
    const auto result = std::from_chars(at_, end_, value);
    if (result.ec == std::errc::result_out_of_range) fail(from, "a timestamp that does not fit 64 bits");
    if (result.ec != std::errc{} || (at_ != from && *at_ == '-')) fail_expected("an integer timestamp");
    at_ = result.ptr;
    return value;
}

}  // namespace penstock
