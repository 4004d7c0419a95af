// Answers as text: SPARQL Results JSON, XML, CSV and TSV, and N-Triples.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "answers/solution_rows.hpp"
#include "answers/text_buffer.hpp"
#include "rdf/term_texts.hpp"

namespace penstock {

enum class ResultFormat : std::uint8_t { Json, Xml, Csv, Tsv, NTriples };

/// Writes an answer in parts, so that the text of a large answer never exists as a whole. `rows` and `terms` must
/// outlive the writer.
class ResultWriter {
public:
    virtual ~ResultWriter() = default;
    /// Appends the next rows, until `out` has `bytes` bytes or the document is complete. Returns whether the document
    /// is not yet complete. DataError if the format cannot represent a term.
    virtual bool write(TextBuffer& out, std::size_t bytes) = 0;

    static std::unique_ptr<ResultWriter> of(ResultFormat format, const SolutionRows& rows, const TermTexts& terms);
};

/// Fetches the terms of an answer that are missing here, all at once.
void require_terms(const SolutionRows& rows, const TermTexts& terms);

/// Appends the line of an evaluation (docs/kafka.md): `head`, the start of a JSON object, then the answer. The line has
/// no character that a reader could treat as a line end.
void append_solutions_line(TextBuffer& out, std::string_view head, const SolutionRows& rows, const TermTexts& terms);
/// The same for triples: as N-Triples with sorted lines, so that equal graphs give equal texts, except for labels of
/// blank nodes.
void append_triples_line(TextBuffer& out, std::string_view head, const SolutionRows& rows, const TermTexts& terms);
/// Appends the member `graph` of such a line, for triples as N-Triples.
void append_graph(TextBuffer& out, std::string_view triples);
/// Appends N-Triples with sorted lines.
void append_sorted(TextBuffer& out, std::string_view triples);

}  // namespace penstock
