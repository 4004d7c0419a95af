#include "answers/evaluation_lines.hpp"

#include <utility>

#include "answers/json_syntax.hpp"
#include "answers/result_syntax.hpp"
#include "answers/result_writer.hpp"
#include "answers/text_syntax.hpp"

namespace penstock {
namespace {

using LineSyntax = JsonSyntax<JsonLineEscapes>;

/// Writes the answers of members, in ascending order of their numbers.
class AnswerWriter {
public:
    AnswerWriter(const MemberRows& rows, const TermTexts& terms)
        : rows_(rows), solutions_(rows.rows, terms), triples_(rows.rows, terms) {}

    /// What answers have in common, followed by a separator: `"head": {…}, `.
    void append_head(TextBuffer& out) const {
        if (rows_.form == AnswerForm::Triples) return;
        if (rows_.form == AnswerForm::Truth)
            out.append(R"("head": {})");
        else
            LineSyntax::head(out, rows_.rows.variables);
        out.append(", ");
    }
    /// The member of the JSON object that has the answer.
    void append_answer(TextBuffer& out, TermId member) {
        while (at_ < rows_.present.size() && rows_.present[at_] < member) ++at_;
        const bool found = at_ < rows_.present.size() && rows_.present[at_] == member;
        const std::size_t first = found ? static_cast<std::size_t>(rows_.starts[at_]) : 0;
        const std::size_t end = found ? static_cast<std::size_t>(rows_.starts[at_ + 1]) : 0;
        switch (rows_.form) {
            case AnswerForm::Truth:
                out.append(first < end ? R"("boolean": true)" : R"("boolean": false)");
                break;
            case AnswerForm::Solutions:
                LineSyntax::results(out);
                solutions_.write_range(out, first, end);
                out.append("]}");
                break;
            case AnswerForm::Triples:
                text_.clear();
                triples_.forget_cells();
                triples_.write_range(text_, first, end);
                append_graph(out, text_.text());
        }
    }
    /// Must be called if the text has become shorter.
    void forget_cells() { solutions_.forget_cells(); }

private:
    const MemberRows& rows_;
    SyntaxWriter<LineSyntax> solutions_;
    SyntaxWriter<NTriplesSyntax> triples_;
    TextBuffer text_;
    std::size_t at_ = 0;
};

}  // namespace

QueryNames::QueryNames(std::vector<std::string> names) : names_(std::move(names)) {
    quoted_.reserve(names_.size());
    TextBuffer text;
    for (const std::string& name : names_) {
        text.clear();
        append_json_string<JsonLineEscapes>(text, name);
        quoted_.emplace_back(text.text());
    }
}

std::vector<EvaluationRecord> append_single_records(TextBuffer& out, const QueryNames& names,
                                                    std::span<const TermId> members, std::string_view shared,
                                                    const MemberRows& rows, const TermTexts& terms) {
    AnswerWriter writer(rows, terms);
    TextBuffer head;
    head.append(", ");
    head.append(shared);
    head.append(", ");
    writer.append_head(head);
    std::vector<EvaluationRecord> records;
    records.reserve(members.size());
    for (const TermId member : members) {
        out.append(R"({"query": )");
        out.append(names.quoted(member));
        out.append(head.text());
        writer.append_answer(out, member);
        out.append('}');
        records.push_back({member, 1, out.size()});
    }
    return records;
}

std::vector<EvaluationRecord> append_batch_records(TextBuffer& out, const QueryNames& names,
                                                   std::span<const TermId> members, std::string_view shared,
                                                   const MemberRows& rows, const TermTexts& terms, std::size_t bytes) {
    AnswerWriter writer(rows, terms);
    TextBuffer head;
    head.append('{');
    head.append(shared);
    head.append(", ");
    writer.append_head(head);
    head.append(R"("evaluations": [)");
    constexpr std::string_view kEnd = "]}";
    std::vector<EvaluationRecord> records;
    std::size_t begin = out.size();
    for (const TermId member : members) {
        const bool open = !records.empty() && records.back().end == 0;
        const std::size_t before = out.size();
        out.append(open ? std::string_view(", ") : head.text());
        const std::size_t at = out.size();
        out.append(R"({"query": )");
        out.append(names.quoted(member));
        out.append(", ");
        writer.append_answer(out, member);
        out.append('}');
        if (open && out.size() - begin + kEnd.size() > bytes) {  // the evaluation moves to the next record
            const std::string evaluation(out.text().substr(at));
            out.shorten(before);
            out.append(kEnd);
            begin = records.back().end = out.size();
            out.append(head.text());
            out.append(evaluation);
            writer.forget_cells();
        }
        if (records.empty() || records.back().end != 0) records.push_back({member, 0, 0});
        ++records.back().evaluations;
    }
    if (!records.empty()) {
        out.append(kEnd);
        records.back().end = out.size();
    }
    return records;
}

}  // namespace penstock
