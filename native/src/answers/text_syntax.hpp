// SPARQL 1.1 Query Results CSV and TSV Formats (https://www.w3.org/TR/sparql11-results-csv-tsv/), and N-Triples. See
// result_syntax.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "answers/escapes.hpp"
#include "rdf/term.hpp"

namespace penstock {

/// Whether Turtle (§2.5.2) allows this literal without quotes and datatype.
bool is_bare_number(const TermView& term);

void append_ntriples_term(TextBuffer& out, const TermView& term);

/// Plain values without types.
class CsvSyntax {
public:
    explicit CsvSyntax(std::span<const std::string>) {}

    void begin(TextBuffer& out, std::span<const std::string> variables) const {
        for (std::size_t i = 0; i < variables.size(); ++i) {
            separate(out, i);
            value(out, variables[i]);
        }
        end_row(out);
    }
    void begin_row(TextBuffer&, bool) const {}
    void separate(TextBuffer& out, std::size_t column) const {
        if (column > 0) out.append(',');
    }
    void unbound(TextBuffer& out, std::size_t column) const { separate(out, column); }

    void cell(TextBuffer& out, std::size_t, const TermView& term) const {
        if (term.kind == Kind::Blank) {
            out.append("_:");
            out.append(term.lexical);
        } else {
            value(out, term.lexical);
        }
    }
    void end_row(TextBuffer& out) const { out.append("\r\n"); }
    void end(TextBuffer&) const {}

private:
    static void value(TextBuffer& out, std::string_view text) {
        if (text.find_first_of("\",\r\n") == std::string_view::npos) return out.append(text);
        out.append('"');
        append_escaped<CsvEscapes>(out, text);
        out.append('"');
    }
};

/// Terms in Turtle syntax, with their types.
class TsvSyntax {
public:
    explicit TsvSyntax(std::span<const std::string>) {}

    void begin(TextBuffer& out, std::span<const std::string> variables) const {
        for (std::size_t i = 0; i < variables.size(); ++i) {
            separate(out, i);
            out.append('?');
            out.append(variables[i]);
        }
        end_row(out);
    }
    void begin_row(TextBuffer&, bool) const {}
    void separate(TextBuffer& out, std::size_t column) const {
        if (column > 0) out.append('\t');
    }
    void unbound(TextBuffer& out, std::size_t column) const { separate(out, column); }

    void cell(TextBuffer& out, std::size_t, const TermView& term) const {
        if (is_bare_number(term)) return out.append(term.lexical);
        append_ntriples_term(out, term);
    }
    void end_row(TextBuffer& out) const { out.append('\n'); }
    void end(TextBuffer&) const {}
};

/// Triples, or quads: a graph name that is unbound is left out.
class NTriplesSyntax {
public:
    explicit NTriplesSyntax(std::span<const std::string>) {}

    void begin(TextBuffer&, std::span<const std::string>) const {}
    void begin_row(TextBuffer&, bool) const {}
    void separate(TextBuffer&, std::size_t) const {}
    void unbound(TextBuffer&, std::size_t) const {}

    void cell(TextBuffer& out, std::size_t, const TermView& term) const {
        append_ntriples_term(out, term);
        out.append(' ');
    }
    void end_row(TextBuffer& out) const { out.append(".\n"); }
    void end(TextBuffer&) const {}
};

}  // namespace penstock
