#include "answers/result_writer.hpp"

#include "answers/json_syntax.hpp"
#include "answers/result_syntax.hpp"
#include "answers/text_syntax.hpp"
#include "answers/xml_syntax.hpp"

namespace penstock {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

/// The lines of a text, without their line feeds, in the order of their bytes, which is that of their code points.
std::vector<std::string_view> sorted_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

}  // namespace

std::unique_ptr<ResultWriter> ResultWriter::of(ResultFormat format, const SolutionRows& rows, const TermTexts& terms) {
    switch (format) {
        case ResultFormat::Json:
            return std::make_unique<SyntaxWriter<JsonSyntax<JsonEscapes>>>(rows, terms);
        case ResultFormat::Xml:
            return std::make_unique<SyntaxWriter<XmlSyntax>>(rows, terms);
        case ResultFormat::Csv:
            return std::make_unique<SyntaxWriter<CsvSyntax>>(rows, terms);
        case ResultFormat::Tsv:
            return std::make_unique<SyntaxWriter<TsvSyntax>>(rows, terms);
        default:
            return std::make_unique<SyntaxWriter<NTriplesSyntax>>(rows, terms);
    }
}

void require_terms(const SolutionRows& rows, const TermTexts& terms) {
    if (!terms.partial()) return;
    std::vector<TermId> ids;
    for (const SolutionColumn& column : rows.columns) ids.insert(ids.end(), column.values.begin(), column.values.end());
    terms.require(ids);
}

void append_solutions_line(TextBuffer& out, std::string_view head, const SolutionRows& rows, const TermTexts& terms) {
    SyntaxWriter<JsonSyntax<JsonLineEscapes>> writer(rows, terms);
    out.append(head);
    out.append(", ");
    writer.syntax().open(out, rows.variables);
    writer.write_rows(out, kAll);
    writer.syntax().end(out);
}

void append_triples_line(TextBuffer& out, std::string_view head, const SolutionRows& rows, const TermTexts& terms) {
    TextBuffer triples;
    SyntaxWriter<NTriplesSyntax>(rows, terms).write_rows(triples, kAll);
    out.append(head);
    out.append(", ");
    append_graph(out, triples.text());
    out.append('}');
}

void append_graph(TextBuffer& out, std::string_view triples) {
    out.append(R"("graph": ")");
    for (const std::string_view line : sorted_lines(triples)) {
        append_escaped<JsonLineEscapes>(out, line);
        out.append("\\n");
    }
    out.append('"');
}

void append_sorted(TextBuffer& out, std::string_view triples) {
    for (const std::string_view line : sorted_lines(triples)) {
        out.append(line);
        out.append('\n');
    }
}

}  // namespace penstock
