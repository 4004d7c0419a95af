// Reads the terms of N-Triples and N-Quads (W3C RDF 1.1 N-Triples §7, N-Quads §6), with all checks of the grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "rdf/term.hpp"

namespace penstock {

/// The fault, and the byte at which it is.
struct SyntaxError {
    const char* at;
    std::string reason;
};

/// A cursor over a document. Every reader throws SyntaxError if the text does not match. Texts point into the document,
/// or, if they had escapes, into the lexer until forget().
class TermLexer {
public:
    TermLexer(std::string_view document, std::size_t max_term_bytes)
        : begin_(document.data()),
          at_(begin_),
          end_(document.data() + document.size()),
          max_term_bytes_(max_term_bytes) {}

    const char* at() const { return at_; }
    const char* end() const { return end_; }
    bool done() const { return at_ == end_; }
    bool at_line_end() const { return at_ == end_ || *at_ == '\n' || *at_ == '\r'; }
    char peek() const { return at_ == end_ ? '\0' : *at_; }
    void move_to(const char* at) { at_ = at; }
    void skip_blanks() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
    }
    /// Advances to the next line's first byte; \r\n is one line end.
    void skip_line_end();
    /// Advances to the end of the line.
    void skip_rest_of_line();
    void skip_comment() {
        if (peek() == '#') skip_rest_of_line();
    }
    void expect(char c, const char* what);

    /// `<…>` as in the production IRIREF, escapes resolved. Does not validate the IRI: the caller calls check(), unless
    /// it has seen the text before.
    std::string_view iri();
    /// Validates by RFC 3987; `from` is the position that an error reports.
    void check(std::string_view iri, const char* from) const;
    /// `_:label`; returns the label.
    std::string_view blank_label();
    /// `"…"`, with its language tag or datatype.
    TermView literal();
    std::int64_t integer();

    /// Whether a text had no escapes, and therefore points into the document.
    bool in_document(std::string_view text) const {
        return std::less_equal<>{}(begin_, text.data()) && std::less<>{}(text.data(), end_);
    }
    /// Frees the texts that had escapes.
    void forget() { resolved_.clear(); }

    [[noreturn]] void fail(const char* at, std::string reason) const { throw SyntaxError{at, std::move(reason)}; }
    /// Reports unexpected input; recognises the syntax of RDF 1.2 and names it in the message.
    [[noreturn]] void fail_expected(const char* what) const;

private:
    std::string_view text();
    std::string_view language_tag();
    void check_length(const char* from, std::size_t bytes) const;
    char32_t hexadecimal(const char* from, int digits);
    char32_t numeric_escape();
    void string_escape(std::string& out);
    void code_point();

    const char* begin_;
    const char* at_;
    const char* end_;
    std::size_t max_term_bytes_;
    std::string_view checked_datatype_ = kXsdString;  // the last checked datatype, which usually occurs again
    std::deque<std::string> resolved_;
};

}  // namespace penstock
