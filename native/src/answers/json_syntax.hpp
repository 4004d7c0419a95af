// SPARQL 1.1 Query Results JSON Format (https://www.w3.org/TR/sparql11-results-json/). See result_syntax.hpp.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
        starts_.reserve(variables.size() * kKinds.size());
        for (const std::string& name : variables) {
            for (const std::string_view kind : kKinds) {
                const std::size_t at = texts_.size();
                append_json_string<Escapes>(texts_, name);
                texts_.append(kind);
                starts_.emplace_back(at, texts_.size() - at);
            }
        }
    }

    /// The member `head` of the document.
    static void head(TextBuffer& out, std::span<const std::string> variables) {
        out.append(R"("head": {"vars": [)");
        for (const std::string& name : variables) {
            if (&name != variables.data()) out.append(", ");
            append_json_string<Escapes>(out, name);
        }
        out.append("]}");
    }
    /// The member `results`, up to the first row.
    static void results(TextBuffer& out) { out.append(R"("results": {"bindings": [)"); }
    /// The members `head` and `results`, up to the first row.
    void open(TextBuffer& out, std::span<const std::string> variables) const {
        head(out, variables);
        out.append(", ");
        results(out);
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
    void unbound(TextBuffer&, std::size_t) const {}

    void cell(TextBuffer& out, std::size_t column, const TermView& term) const {
        const std::size_t kind = term.kind == Kind::Iri ? 0 : term.kind == Kind::Blank ? 1 : 2;
        const auto [at, bytes] = starts_[column * kKinds.size() + kind];
        out.append(texts_.text().substr(at, bytes));
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
    static constexpr std::array<std::string_view, 3> kKinds = {
        R"(: {"type": "uri", "value": ")", R"(: {"type": "bnode", "value": ")", R"(: {"type": "literal", "value": ")"};
    TextBuffer texts_;  // what precedes the value of a term, for each column and kind
    std::vector<std::pair<std::size_t, std::size_t>> starts_;  // position and size in `texts_`, by column and kind
    bool bound_ = false;                                       // the current row has a bound variable already
};

}  // namespace penstock
