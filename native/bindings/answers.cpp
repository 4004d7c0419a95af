// Answers as text: see _native.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "answers/avro_records.hpp"
#include "answers/evaluation_lines.hpp"
#include "answers/result_writer.hpp"
#include "answers/term_arrays.hpp"
#include "answers/text_terms.hpp"
#include "arrays.hpp"
#include "errors.hpp"
#include "rdf/sweeps.hpp"
#include "term_tuples.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

constexpr std::size_t kCellBytes = 96;
constexpr std::size_t kFewCells = 256;  // are written before another thread could take over the GIL

ResultFormat format_named(std::string_view name) {
    if (name == "json") return ResultFormat::Json;
    if (name == "xml") return ResultFormat::Xml;
    if (name == "csv") return ResultFormat::Csv;
    if (name == "tsv") return ResultFormat::Tsv;
    if (name == "ntriples") return ResultFormat::NTriples;
    throw nb::value_error("no format of answers has this name");
}

/// The rows of an answer whose columns belong to Python.
class AnswerIn {
public:
    AnswerIn(std::vector<std::string> variables, std::vector<IdsIn> columns, const std::vector<std::size_t>& repeats,
             std::size_t rows)
        : held_(std::move(columns)), rows_{std::move(variables), {}, rows} {
        if (held_.size() != rows_.variables.size() || (!repeats.empty() && repeats.size() != held_.size()))
            throw nb::value_error("an answer has one column for each variable");
        for (std::size_t i = 0; i < held_.size(); ++i) {
            const std::size_t repeat = repeats.empty() ? 1 : repeats[i];
            const bool whole = repeats.empty() ? held_[i].size() == rows : held_[i].size() > 0 && repeat > 0;
            if (rows > 0 && !whole) throw nb::value_error("the columns of an answer have one value for each row");
            rows_.columns.push_back({view(held_[i]), repeat});
        }
    }
    const SolutionRows& rows() const { return rows_; }
    bool few() const { return rows_.rows * rows_.columns.size() <= kFewCells; }
    /// The size of the text if it is small; a large one grows.
    std::size_t likely_bytes() const { return std::min(rows_.rows * rows_.columns.size(), kFewCells) * kCellBytes; }
    /// Calls write() without the GIL, if that takes some time.
    template <class Write>
    auto unlocked(Write write) const {
        if (few()) return write();
        const Unlocked released;
        return write();
    }

private:
    std::vector<IdsIn> held_;
    SolutionRows rows_;
};

nb::bytes bytes_of(const TextBuffer& text) { return nb::bytes(text.text().data(), text.size()); }

nb::object str_of(const TextBuffer& text) {
    PyObject* const made = PyUnicode_DecodeUTF8(text.text().data(), static_cast<Py_ssize_t>(text.size()), nullptr);
    if (made == nullptr) nb::raise_python_error();
    return nb::steal(made);
}

nb::object answer_text(std::string_view format, std::vector<std::string> variables, std::vector<IdsIn> columns,
                       const std::vector<std::size_t>& repeats, std::size_t rows, const TermTexts& terms) {
    const AnswerIn answer(std::move(variables), std::move(columns), repeats, rows);
    require_terms(answer.rows(), terms);
    const auto writer = ResultWriter::of(format_named(format), answer.rows(), terms);
    TextBuffer text;
    text.room(answer.likely_bytes());
    answer.unlocked([&] { return writer->write(text, SIZE_MAX); });
    return str_of(text);
}

/// A document that is read in parts.
class AnswerText {
public:
    AnswerText(std::string_view format, std::vector<std::string> variables, std::vector<IdsIn> columns,
               const std::vector<std::size_t>& repeats, std::size_t rows, nb::object terms)
        : terms_(std::move(terms)), answer_(std::move(variables), std::move(columns), repeats, rows) {
        const auto& texts = nb::cast<const TermTexts&>(terms_);
        require_terms(answer_.rows(), texts);
        writer_ = ResultWriter::of(format_named(format), answer_.rows(), texts);
    }
    nb::bytes read(std::size_t bytes) {
        text_.clear();
        if (more_) more_ = answer_.unlocked([&] { return writer_->write(text_, bytes); });
        return bytes_of(text_);
    }

private:
    nb::object terms_;
    AnswerIn answer_;
    std::unique_ptr<ResultWriter> writer_;
    TextBuffer text_;
    bool more_ = true;
};

template <void (*append)(TextBuffer&, std::string_view, const SolutionRows&, const TermTexts&)>
nb::bytes line(std::string_view head, std::vector<std::string> variables, std::vector<IdsIn> columns,
               const std::vector<std::size_t>& repeats, std::size_t rows, const TermTexts& terms) {
    const AnswerIn answer(std::move(variables), std::move(columns), repeats, rows);
    require_terms(answer.rows(), terms);
    TextBuffer text;
    answer.unlocked([&] { append(text, head, answer.rows(), terms); });
    return bytes_of(text);
}

AnswerForm form_named(std::string_view name) {
    if (name == "SELECT") return AnswerForm::Solutions;
    if (name == "ASK") return AnswerForm::Truth;
    return AnswerForm::Triples;
}

/// Returns the keys and values of the records, and their numbers of evaluations. `bytes`: the maximum size of a record
/// with several evaluations; 0: each evaluation has a record of its own.
nb::tuple evaluation_records(const QueryNames& names, const IdsIn& members, std::int64_t time, std::string_view shared,
                             std::string_view form, std::vector<std::string> variables, std::vector<IdsIn> columns,
                             const IdsIn& present, const TimesIn& starts, const TermTexts& terms, std::size_t bytes) {
    if (starts.size() != present.size() + 1) throw nb::value_error("each member has a range of rows");
    for (const TermId member : view(members))
        if (member == 0 || member > names.size()) throw nb::value_error("no query has this number");
    const auto rows = static_cast<std::size_t>(view(starts).back());
    const AnswerIn answer(std::move(variables), std::move(columns), {}, rows);
    require_terms(answer.rows(), terms);
    const MemberRows given{form_named(form), answer.rows(), view(present), view(starts)};
    TextBuffer text;
    std::vector<EvaluationRecord> records;
    {
        const Unlocked released;
        records = bytes == 0 ? append_single_records(text, names, view(members), shared, given, terms)
                             : append_batch_records(text, names, view(members), shared, given, terms, bytes);
    }
    const std::string instant = "@" + std::to_string(time);
    nb::list keys, values, counts;
    std::string key;
    std::size_t at = 0;
    for (const EvaluationRecord& record : records) {
        key = names.name(record.first);
        key += instant;
        keys.append(nb::bytes(key.data(), key.size()));
        values.append(nb::bytes(text.text().data() + at, record.end - at));
        counts.append(record.evaluations);
        at = record.end;
    }
    return nb::make_tuple(keys, values, counts);
}

std::string_view view_of(const nb::bytes& given) { return {given.c_str(), given.size()}; }

/// Returns the keys and values of records in Avro, and the number of records of each member. `types`: one character of
/// AvroCell for each column of a SELECT. `prefix`: what precedes the name in a key.
nb::tuple avro_records(const QueryNames& names, const IdsIn& members, std::int64_t time, std::string_view prefix,
                       const nb::bytes& head, const nb::bytes& instant, std::string_view form, std::string_view types,
                       std::vector<IdsIn> columns, const IdsIn& present, const TimesIn& starts,
                       const TermTexts& terms) {
    if (starts.size() != present.size() + 1) throw nb::value_error("each member has a range of rows");
    for (const TermId member : view(members))
        if (member == 0 || member > names.size()) throw nb::value_error("no query has this number");
    AvroFrame frame{view_of(head), view_of(instant), {}};
    for (const char type : types) {
        if (std::string_view("sldb").find(type) == std::string_view::npos) throw nb::value_error("no type of a cell");
        frame.cells.push_back(static_cast<AvroCell>(type));
    }
    if (form == "SELECT" && frame.cells.size() != columns.size())
        throw nb::value_error("an answer has one column for each type");
    const auto rows = static_cast<std::size_t>(view(starts).back());
    std::vector<std::string> variables(columns.size());
    const AnswerIn answer(std::move(variables), std::move(columns), {}, rows);
    require_terms(answer.rows(), terms);
    const MemberRows given{form_named(form), answer.rows(), view(present), view(starts)};
    TextBuffer text;
    AvroRecords records;
    {
        const Unlocked released;
        records = append_avro_records(text, names, view(members), frame, given, terms);
    }
    const std::string at = "@" + std::to_string(time);
    nb::list keys, values;
    std::string key;
    std::size_t begin = 0, number = 0;
    for (std::size_t i = 0; i < records.counts.size(); ++i) {
        key = prefix;
        key += names.name(view(members)[i]);
        key += at;
        const std::size_t bytes = key.size();
        for (std::size_t row = 0; row < records.counts[i]; ++row, ++number) {
            if (row > 0) key.replace(bytes, std::string::npos, "/" + std::to_string(row));
            keys.append(nb::bytes(key.data(), key.size()));
            values.append(nb::bytes(text.text().data() + begin, records.ends[number] - begin));
            begin = records.ends[number];
        }
    }
    return nb::make_tuple(keys, values, records.counts);
}

/// Members, ids, and the offsets and bytes of lexical forms.
using EarlierIn = std::tuple<IdsIn, IdsIn, std::pair<ColumnIn<std::int32_t>, ColumnIn<std::uint8_t>>>;

nb::tuple arrays_of(const TermTexts& terms, const IdsIn& ids, const std::optional<IdsIn>& members,
                    const std::optional<EarlierIn>& earlier) {
    TermArrays made;
    {
        const Unlocked released;
        if (members && earlier) {
            const auto& [of_members, of_ids, lexicals] = *earlier;
            const TextColumnView texts(view(lexicals.first), view(lexicals.second));
            made = term_arrays(view(ids), terms, view(*members), {view(of_members), view(of_ids), texts});
        } else {
            made = term_arrays(view(ids), terms);
        }
    }
    const auto texts = nb::make_tuple(to_numpy(std::move(made.lexicals.offsets)),
                                      to_numpy<char, std::uint8_t>(std::move(made.lexicals.bytes)));
    return nb::make_tuple(to_numpy(std::move(made.kinds)), texts, to_numpy(std::move(made.datatypes)),
                          to_numpy(std::move(made.langs)), made.names);
}

}  // namespace
}  // namespace penstock

void bind_answers(nb::module_& m) {
    using namespace penstock;
    m.def("answer_text", &answer_text, "format"_a, "variables"_a, "columns"_a, "repeats"_a, "rows"_a, "terms"_a);
    nb::class_<AnswerText>(m, "AnswerText")
        .def(nb::init<std::string_view, std::vector<std::string>, std::vector<IdsIn>, std::vector<std::size_t>,
                      std::size_t, nb::object>(),
             "format"_a, "variables"_a, "columns"_a, "repeats"_a, "rows"_a, "terms"_a)
        .def("read", &AnswerText::read, "bytes"_a);
    m.def("solutions_line", &line<append_solutions_line>, "head"_a, "variables"_a, "columns"_a, "repeats"_a, "rows"_a,
          "terms"_a);
    m.def("triples_line", &line<append_triples_line>, "head"_a, "variables"_a, "columns"_a, "repeats"_a, "rows"_a,
          "terms"_a);
    nb::class_<QueryNames>(m, "QueryNames").def(nb::init<std::vector<std::string>>(), "names"_a);
    m.def("evaluation_records", &evaluation_records, "names"_a, "members"_a, "time"_a, "shared"_a, "form"_a,
          "variables"_a, "columns"_a, "present"_a, "starts"_a, "terms"_a, "bytes"_a);
    m.def("avro_records", &avro_records, "names"_a, "members"_a, "time"_a, "prefix"_a, "head"_a, "instant"_a, "form"_a,
          "types"_a, "columns"_a, "present"_a, "starts"_a, "terms"_a);
    m.def("term_arrays", &arrays_of, "terms"_a, "ids"_a, "members"_a = nb::none(), "earlier"_a = nb::none());
    m.def("dictionary_sweeps", &dictionary_sweeps);
    nb::class_<TextTerms, TermTexts>(m, "TextTerms")
        .def(nb::init<>())
        .def(
            "id_of",
            [](TextTerms& t, int kind, std::string_view lexical, std::string_view datatype, std::string_view lang) {
                return t.id_of(term_view(kind, lexical, datatype, lang));
            },
            "kind"_a, "lexical"_a, "datatype"_a = "", "lang"_a = "")
        .def("publish", [](const TextTerms&, nb::object ids) { return ids; }, "ids"_a);
}
