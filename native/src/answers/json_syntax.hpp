// SPARQL 1.1 Query Results JSON Format (https://www.w3.org/TR/sparql11-results-json/). See result_syntax.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/escapes.hpp"
#include "rdf/term.hpp"

namespace penstock {

template <class Escapes>
void append_json_string(TextBuffer& out, std::string_view text) {
    out.append('"');
    append_escaped<Escapes>(out, text);
    out.append('"');
}

/// `Escapes`: JsonEscapes or JsonLineEscapes.
template <class Escapes>
class JsonSyntax {
public:
    explicit JsonSyntax(std::span<const std::string> variables) {
        for (const std::string& name : variables) {
            TextBuffer key;
            append_json_string<Escapes>(key, name);
            const std::string start(key.text());
            starts_.push_back({start + R"(: {"type": "uri", "value": ")", start + R"(: {"type": "bnode", "value": ")",
                               start + R"(: {"type": "literal", "value": ")"});
        }
    }

    /// The members `head` and `results` of the document, up to the first row.
    void open(TextBuffer& out, std::span<const std::string> variables) const {
        out.append(R"("head": {"vars": [)");
        for (const std::string& name : variables) {
            if (&name != variables.data()) out.append(", ");
            append_json_string<Escapes>(out, name);
        }
        out.append(R"(]}, "results": {"bindings": [)");
    }
    void begin(TextBuffer& out, std::span<const std::string> variables) const {
        out.append('{');
        open(out, variables);
    }
    void begin_row(TextBuffer& out, bool first) {
        out.append(first ? "{" : ", {");
        bound_ = false;
    }
    void separate(TextBuffer& out, std::size_t) {
        if (bound_) out.append(", ");
        bound_ = true;
    }
    static constexpr bool kSeparatesUnbound = false;

    void cell(TextBuffer& out, std::size_t column, const TermView& term) const {
        const Starts& starts = starts_[column];
        out.append(term.kind == Kind::Iri ? starts.iri : term.kind == Kind::Blank ? starts.blank : starts.literal);
        append_escaped<Escapes>(out, term.lexical);
        if (!term.lang.empty()) {
            out.append(R"(", "xml:lang": ")");
            append_escaped<Escapes>(out, term.lang);
        } else if (term.kind == Kind::Literal && term.datatype != kXsdString) {
            out.append(R"(", "datatype": ")");
            append_escaped<Escapes>(out, term.datatype);
        }
        out.append("\"}");
    }
    void end_row(TextBuffer& out) const { out.append('}'); }
    void end(TextBuffer& out) const { out.append("]}}"); }

private:
    /// What precedes the value of a term, by its kind.
    struct Starts {
        std::string iri, blank, literal;
    };
    std::vector<Starts> starts_;  // by column
    bool bound_ = false;          // the current row has a bound variable already
};

}  // namespace penstock
