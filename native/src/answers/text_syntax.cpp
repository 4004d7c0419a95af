#include "answers/text_syntax.hpp"

namespace penstock {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads digits from position `at` on. Returns their number.
std::size_t digits(std::string_view text, std::size_t& at) {
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - from;
}

bool sign(std::string_view text, std::size_t& at) {
    if (at >= text.size() || (text[at] != '+' && text[at] != '-')) return false;
    ++at;
    return true;
}

}  // namespace

bool is_bare_number(const TermView& term) {
    if (term.kind != Kind::Literal || !term.datatype.starts_with(kXsd)) return false;
    const std::string_view type = term.datatype.substr(kXsd.size()), text = term.lexical;
    const bool integer = type == "integer", decimal = type == "decimal", real = type == "double";
    if (!integer && !decimal && !real) return false;
    std::size_t at = 0;
    sign(text, at);
    const std::size_t whole = digits(text, at);
    const bool point = !integer && at < text.size() && text[at] == '.';
    if (point) ++at;
    const std::size_t fraction = point ? digits(text, at) : 0;
    if (integer) return whole > 0 && at == text.size();
    if (decimal) return point && fraction > 0 && at == text.size();
    if (whole + fraction == 0 || at == text.size() || (text[at] != 'e' && text[at] != 'E')) return false;
    ++at;
    sign(text, at);
    return digits(text, at) > 0 && at == text.size();
}

void append_ntriples_term(TextBuffer& out, const TermView& term) {
    if (term.kind == Kind::Iri) {
        out.append('<');
        out.append(term.lexical);
        return out.append('>');
    }
    if (term.kind == Kind::Blank) {
        out.append("_:");
        return out.append(term.lexical);
    }
    out.append('"');
    append_escaped<TurtleEscapes>(out, term.lexical);
    out.append('"');
    if (!term.lang.empty()) {
        out.append('@');
        out.append(term.lang);
    } else if (term.datatype != kXsdString) {
        out.append("^^<");
        out.append(term.datatype);
        out.append('>');
    }
}

}  // namespace penstock
