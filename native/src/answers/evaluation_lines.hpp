// The evaluations of many queries as JSON (docs/kafka.md, "Results"): one record each, or many in one record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/solution_rows.hpp"
#include "answers/text_buffer.hpp"
#include "rdf/term_texts.hpp"

namespace penstock {

/// The content of an answer: the solutions of a SELECT, the truth value of an ASK (whether there are rows), or the
/// triples of a CONSTRUCT or DESCRIBE.
enum class AnswerForm : std::uint8_t { Solutions, Truth, Triples };

/// The rows of an execution: member `present[i]` has the rows from `starts[i]` to `starts[i + 1]`. `present` is
/// ascending.
struct MemberRows {
    AnswerForm form = AnswerForm::Solutions;
    SolutionRows rows;
    std::span<const TermId> present;
    std::span<const std::int64_t> starts;
};

/// The names of queries, by member number; the first number is 1.
class QueryNames {
public:
    explicit QueryNames(std::vector<std::string> names);
    std::size_t size() const { return names_.size(); }
    std::string_view name(TermId member) const { return names_[member - 1]; }
    /// The name as a JSON string.
    std::string_view quoted(TermId member) const { return quoted_[member - 1]; }

private:
    std::vector<std::string> names_, quoted_;
};

/// A record in a text that several records share. `first`: the member of its first evaluation.
struct EvaluationRecord {
    TermId first = 0;
    std::size_t evaluations = 0;
    std::size_t end = 0;  // of the record in the text; it begins where the previous one ends
};

/// Appends one record for each member. `shared`: members of the JSON object that all evaluations have in common,
/// without braces. `members`: ascending numbers of `names`.
std::vector<EvaluationRecord> append_single_records(TextBuffer& out, const QueryNames& names,
                                                    std::span<const TermId> members, std::string_view shared,
                                                    const MemberRows& rows, const TermTexts& terms);

/// Appends records with several evaluations each. A record has at most `bytes` bytes, unless a single evaluation is
/// longer.
std::vector<EvaluationRecord> append_batch_records(TextBuffer& out, const QueryNames& names,
                                                   std::span<const TermId> members, std::string_view shared,
                                                   const MemberRows& rows, const TermTexts& terms, std::size_t bytes);

}  // namespace penstock
