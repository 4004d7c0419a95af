#include "answers/avro_records.hpp"

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "answers/result_syntax.hpp"
#include "answers/result_writer.hpp"
#include "answers/text_syntax.hpp"
#include "errors.hpp"
#include "expr/real_text.hpp"

namespace penstock {
namespace {

constexpr char kNull = 0;   // index of null in the union of a nullable field
constexpr char kValue = 2;  // index 1, zigzag-encoded

void append_long(TextBuffer& out, std::int64_t value) {
    auto rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
    for (; rest >= 0x80; rest >>= 7) out.append(static_cast<char>(rest | 0x80));
    out.append(static_cast<char>(rest));
}

void append_string(TextBuffer& out, std::string_view prefix, std::string_view text) {
    append_long(out, static_cast<std::int64_t>(prefix.size() + text.size()));
    out.append(prefix);
    out.append(text);
}

void append_double(TextBuffer& out, double value) {
    static_assert(std::endian::native == std::endian::little);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append({bytes, sizeof value});
}

/// The rows of a SELECT; each row is a record. `head`: what precedes the number of the row.
class AvroRows {
public:
    explicit AvroRows(std::span<const std::string>) {}

    void use(std::span<const AvroCell> cells, std::vector<std::size_t>& ends) {
        cells_ = cells;
        ends_ = &ends;
    }
    void head(std::string_view text) { head_ = text; }

    void begin(TextBuffer&, std::span<const std::string>) const {}
    void begin_row(TextBuffer& out, bool first) {
        if (first) row_ = 0;
        out.append(head_);
        append_long(out, row_++);
    }
    void separate(TextBuffer&, std::size_t) const {}
    void unbound(TextBuffer& out, std::size_t) const { out.append(kNull); }
    void cell(TextBuffer& out, std::size_t column, const TermView& term) const {
        out.append(kValue);
        if (cells_[column] == AvroCell::String)
            append_string(out, term.kind == Kind::Blank ? "_:" : "", term.lexical);
        else if (term.kind != Kind::Literal || !append_typed(out, cells_[column], term.lexical))
            throw LimitError("the value \"" + std::string(term.lexical.substr(0, kShown)) +
                             "\" does not have the type of its field in Avro");
    }
    void end_row(TextBuffer& out) const { ends_->push_back(out.size()); }
    void end(TextBuffer&) const {}

    /// Appends the record of an answer without rows.
    void append_empty(TextBuffer& out) {
        begin_row(out, true);
        for (std::size_t i = 0; i < cells_.size(); ++i) unbound(out, i);
        end_row(out);
    }

private:
    static constexpr std::size_t kShown = 40;

    static bool append_typed(TextBuffer& out, AvroCell type, std::string_view text) {
        if (type == AvroCell::Boolean) {
            out.append(static_cast<char>(text == "true" || text == "1"));
            return true;
        }
        if (type == AvroCell::Double) {
            double value = 0;
            if (!expr::parse_real(text, value)) return false;
            append_double(out, value);
            return true;
        }
        if (text.starts_with('+')) text.remove_prefix(1);
        std::int64_t value = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
        if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return false;
        append_long(out, value);
        return true;
    }

    std::span<const AvroCell> cells_;
    std::vector<std::size_t>* ends_ = nullptr;
    std::string_view head_;
    std::int64_t row_ = 0;
};

/// Writes the records of members, in ascending order of their numbers.
class AvroWriter {
public:
    AvroWriter(const QueryNames& names, const AvroFrame& frame, const MemberRows& rows, const TermTexts& terms,
               std::vector<std::size_t>& ends)
        : names_(names),
          frame_(frame),
          rows_(rows),
          solutions_(rows.rows, terms),
          triples_(rows.rows, terms),
          ends_(ends) {
        solutions_.syntax().use(frame.cells, ends);
    }

    void append(TextBuffer& out, TermId member) {
        while (at_ < rows_.present.size() && rows_.present[at_] < member) ++at_;
        const bool found = at_ < rows_.present.size() && rows_.present[at_] == member;
        const std::size_t first = found ? static_cast<std::size_t>(rows_.starts[at_]) : 0;
        const std::size_t end = found ? static_cast<std::size_t>(rows_.starts[at_ + 1]) : 0;
        head_.clear();
        head_.append(frame_.head);
        append_string(head_, {}, names_.name(member));
        head_.append(frame_.instant);
        head_.append(kNull);  // the error
        if (rows_.form == AnswerForm::Solutions) return append_solutions(out, first, end);
        out.append(head_.text());
        out.append(kValue);
        if (rows_.form == AnswerForm::Truth)
            out.append(static_cast<char>(first < end));
        else
            append_graph_text(out, first, end);
        ends_.push_back(out.size());
    }

private:
    void append_solutions(TextBuffer& out, std::size_t first, std::size_t end) {
        append_long(head_, static_cast<std::int64_t>(end - first));
        solutions_.syntax().head(head_.text());
        if (first == end)
            solutions_.syntax().append_empty(out);
        else
            solutions_.write_range(out, first, end);
    }
    void append_graph_text(TextBuffer& out, std::size_t first, std::size_t end) {
        text_.clear();
        triples_.forget_cells();
        triples_.write_range(text_, first, end);
        append_long(out, static_cast<std::int64_t>(text_.size()));
        append_sorted(out, text_.text());
    }

    const QueryNames& names_;
    const AvroFrame& frame_;
    const MemberRows& rows_;
    SyntaxWriter<AvroRows> solutions_;
    SyntaxWriter<NTriplesSyntax> triples_;
    std::vector<std::size_t>& ends_;
    TextBuffer head_, text_;
    std::size_t at_ = 0;
};

}  // namespace

AvroRecords append_avro_records(TextBuffer& out, const QueryNames& names, std::span<const TermId> members,
                                const AvroFrame& frame, const MemberRows& rows, const TermTexts& terms) {
    AvroRecords records;
    records.counts.reserve(members.size());
    AvroWriter writer(names, frame, rows, terms, records.ends);
    for (const TermId member : members) {
        const std::size_t before = records.ends.size();
        writer.append(out, member);
        records.counts.push_back(records.ends.size() - before);
    }
    return records;
}

}  // namespace penstock
