// SPARQL Query Results XML Format (https://www.w3.org/TR/rdf-sparql-XMLres/). See result_syntax.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/escapes.hpp"
#include "rdf/term.hpp"

namespace penstock {

class XmlSyntax {
public:
    explicit XmlSyntax(std::span<const std::string> variables) {
        for (const std::string& name : variables) {
            TextBuffer tag;
            append_attribute(tag, "<binding name=", name);
            tag.append('>');
            tags_.emplace_back(tag.text());
        }
    }

    void begin(TextBuffer& out, std::span<const std::string> variables) const {
        out.append("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        out.append("<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\">\n<head>\n");
        for (const std::string& name : variables) {
            append_attribute(out, "<variable name=", name);
            out.append("/>\n");
        }
        out.append("</head>\n<results>\n");
    }
    void begin_row(TextBuffer& out, bool) const { out.append("<result>"); }
    void separate(TextBuffer&, std::size_t) const {}
    void unbound(TextBuffer&, std::size_t) const {}

    void cell(TextBuffer& out, std::size_t column, const TermView& term) const {
        out.append(tags_[column]);
        if (term.kind == Kind::Iri) {
            element(out, "<uri>", term.lexical, "</uri>");
        } else if (term.kind == Kind::Blank) {
            element(out, "<bnode>", term.lexical, "</bnode>");
        } else {
            if (!term.lang.empty()) {
                append_attribute(out, "<literal xml:lang=", term.lang);
            } else if (term.datatype != kXsdString) {
                append_attribute(out, "<literal datatype=", term.datatype);
            } else {
                out.append("<literal");
            }
            element(out, ">", term.lexical, "</literal>");
        }
        out.append("</binding>");
    }
    void end_row(TextBuffer& out) const { out.append("</result>\n"); }
    void end(TextBuffer& out) const { out.append("</results>\n</sparql>\n"); }

private:
    static void append_attribute(TextBuffer& out, std::string_view opening, std::string_view value) {
        out.append(opening);
        out.append('"');
        append_escaped<XmlAttributeEscapes>(out, value);
        out.append('"');
    }
    static void element(TextBuffer& out, std::string_view opening, std::string_view text, std::string_view closing) {
        out.append(opening);
        append_escaped<XmlEscapes>(out, text);
        out.append(closing);
    }
    std::vector<std::string> tags_;  // the opening tag of each variable's binding
};

}  // namespace penstock
