#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "answers/evaluation_lines.hpp"
#include "answers/result_writer.hpp"
#include "answers/text_terms.hpp"
#include "errors.hpp"
#include "rdf/dictionary.hpp"

namespace penstock {
namespace {

const std::vector<ResultFormat> kFormats = {ResultFormat::Json, ResultFormat::Xml, ResultFormat::Csv, ResultFormat::Tsv,
                                            ResultFormat::NTriples};

TermView literal(std::string_view text, std::string_view datatype = kXsdString) {
    return {Kind::Literal, text, datatype, {}};
}

std::string whole(ResultFormat format, const SolutionRows& rows, const TermTexts& terms) {
    TextBuffer text;
    EXPECT_FALSE(ResultWriter::of(format, rows, terms)->write(text, SIZE_MAX));
    return std::string(text.text());
}

std::string in_parts(ResultFormat format, const SolutionRows& rows, const TermTexts& terms, std::size_t bytes) {
    const auto writer = ResultWriter::of(format, rows, terms);
    std::string found;
    TextBuffer part;
    for (bool more = true; more;) {
        part.clear();
        more = writer->write(part, bytes);
        found += part.text();
    }
    return found;
}

TEST(AnswersWriter, JsonIsThatOfTheRecommendation) {
    Dictionary dictionary;
    const LocalTerms terms(dictionary);
    const std::vector<TermId> x = {dictionary.intern({Kind::Iri, "urn:a", {}, {}}), kUnbound};
    const std::vector<TermId> y = {dictionary.intern(literal("say \"hi\"\n\x01")),
                                   dictionary.intern({Kind::Literal, "chat", kRdfLangString, "fr"})};
    EXPECT_EQ(whole(ResultFormat::Json, {{"x", "y"}, {{x}, {y}}, 2}, terms),
              R"({"head": {"vars": ["x", "y"]}, "results": {"bindings": [)"
              R"({"x": {"type": "uri", "value": "urn:a"}, )"
              R"("y": {"type": "literal", "value": "say \"hi\"\n\u0001"}}, )"
              R"({"y": {"type": "literal", "value": "chat", "xml:lang": "fr"}}]}})");
}

TEST(AnswersWriter, EveryPositionOfASpecialCharacterIsFound) {
    TextTerms terms;
    for (std::size_t length = 1; length < 40; ++length) {
        for (std::size_t at = 0; at < length; ++at) {
            std::string text(length, 'a');
            text[at] = '"';
            const std::vector<TermId> column = {terms.id_of(literal(text))};
            const std::string quoted = text.substr(0, at) + "\\\"" + text.substr(at + 1);
            const std::string found = whole(ResultFormat::Json, {{"x"}, {{column}}, 1}, terms);
            EXPECT_NE(found.find("\"value\": \"" + quoted + "\"}"), std::string::npos) << found;
        }
    }
}

TEST(AnswersWriter, LineEndsOfAnyReaderAreEscapedInLines) {
    TextTerms terms;
    const std::vector<TermId> column = {
        terms.id_of(literal("a\xC2\x85 \xE2\x80\xA8\xE2\x80\xA9\xC2\xA0\xE2\x82\xAC\xC2"))};
    TextBuffer line;
    append_solutions_line(line, R"({"query": "q")", {{"x"}, {{column}}, 1}, terms);
    EXPECT_NE(line.text().find("a\\u0085 \\u2028\\u2029\xC2\xA0\xE2\x82\xAC\xC2\""), std::string_view::npos);
}

TEST(AnswersWriter, TriplesOfALineAreSorted) {
    TextTerms terms;
    const auto iri = [&](std::string_view text) { return terms.id_of({Kind::Iri, text, {}, {}}); };
    const std::vector<TermId> s = {iri("urn:b"), iri("urn:a")}, p = {iri("urn:p"), iri("urn:p")};
    TextBuffer line;
    append_triples_line(line, R"({"query": "q")", {{"s", "p", "o"}, {{s}, {p}, {s}}, 2}, terms);
    EXPECT_EQ(line.text(), R"({"query": "q", "graph": "<urn:a> <urn:p> <urn:a> .\n<urn:b> <urn:p> <urn:b> .\n"})");
}

TEST(AnswersWriter, XmlRefusesCharactersThatItCannotContain) {
    TextTerms terms;
    for (const std::string_view text : {"\x01", "a\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
        const std::vector<TermId> column = {terms.id_of(literal(text))};
        TextBuffer out;
        const SolutionRows rows{{"x"}, {{column}}, 1};
        const auto writer = ResultWriter::of(ResultFormat::Xml, rows, terms);
        EXPECT_THROW(writer->write(out, SIZE_MAX), DataError);
    }
    const std::vector<TermId> column = {terms.id_of(literal("\xEF\xBF\xBD\t\r<&"))};
    EXPECT_NE(whole(ResultFormat::Xml, {{"x"}, {{column}}, 1}, terms).find("\xEF\xBF\xBD\t&#13;&lt;&amp;<"),
              std::string::npos);
}

TEST(AnswersWriter, PartsOfAnySizeGiveTheWholeText) {
    std::mt19937 random(7);
    TextTerms terms;
    std::vector<TermId> ids = {kUnbound};
    for (int i = 0; i < 40; ++i) {
        std::string text;
        for (std::size_t length = random() % 30; text.size() < length;) text += static_cast<char>(' ' + random() % 95);
        ids.push_back(terms.id_of(i % 3 == 0 ? TermView{Kind::Iri, text, {}, {}} : literal(text)));
    }
    for (int round = 0; round < 20; ++round) {
        std::vector<std::vector<TermId>> columns(3);
        const std::size_t rows = random() % 50;
        for (std::vector<TermId>& column : columns)
            for (std::size_t i = 0; i < rows; ++i) column.push_back(ids[random() % (round % 2 == 0 ? 3 : ids.size())]);
        const SolutionRows answer{{"a", "b", "c"}, {{columns[0]}, {columns[1]}, {columns[2]}}, rows};
        for (const ResultFormat format : kFormats) {
            const std::string text = whole(format, answer, terms);
            for (const std::size_t bytes : {1, 50, 700}) EXPECT_EQ(in_parts(format, answer, terms, bytes), text);
        }
    }
}

TEST(AnswersWriter, RepeatedColumnsAreThoseOfTheCrossProduct) {
    TextTerms terms;
    const auto id = [&](std::string_view text) { return terms.id_of(literal(text)); };
    const std::vector<TermId> left = {id("1"), id("2")}, right = {id("a"), id("b"), id("c")};
    EXPECT_EQ(whole(ResultFormat::Csv, {{"r", "l"}, {{right, 1}, {left, 3}}, 6}, terms),
              "r,l\r\na,1\r\nb,1\r\nc,1\r\na,2\r\nb,2\r\nc,2\r\n");
}

TEST(AnswersWriter, RecordsOfManyEvaluationsAreDividedAtTheirLimit) {
    TextTerms terms;
    std::vector<TermId> column;
    for (int i = 0; i < 6; ++i) column.push_back(terms.id_of(literal(i < 3 ? "same" : std::string(20, 'x'))));
    const QueryNames names({"a", "b \"q\"", "c", "d"});
    const std::vector<TermId> present = {1, 2, 4}, members = {1, 2, 3, 4};
    const std::vector<std::int64_t> starts = {0, 2, 3, 6};
    const MemberRows rows{AnswerForm::Solutions, {{"x"}, {{column}}, 6}, present, starts};
    TextBuffer singles;
    const auto each = append_single_records(singles, names, members, R"("time": 1)", rows, terms);
    ASSERT_EQ(each.size(), 4U);
    std::vector<std::string> bodies;
    const std::string_view head = R"("head": {"vars": ["x"]}, )";
    std::size_t at = 0;
    for (const EvaluationRecord& record : each) {
        const std::string_view text = singles.text().substr(at, record.end - at);
        bodies.emplace_back(text.substr(text.find(head) + head.size()));
        at = record.end;
    }
    EXPECT_EQ(bodies[2], R"("results": {"bindings": []}})");
    const std::string opening = R"({"time": 1, )" + std::string(head) + R"("evaluations": [)";
    const std::vector<std::string> quoted = {R"("a")", R"("b \"q\"")", R"("c")", R"("d")"};
    for (std::size_t bytes = 1; bytes < 800; ++bytes) {
        TextBuffer text;
        const auto records = append_batch_records(text, names, members, R"("time": 1)", rows, terms, bytes);
        std::string expected;
        std::size_t next = 0;
        for (const EvaluationRecord& record : records) {
            EXPECT_EQ(record.first, next + 1);
            const std::size_t begin = expected.size();
            expected += opening;
            for (std::size_t i = 0; i < record.evaluations; ++i, ++next)
                expected += (i > 0 ? ", " : "") + (R"({"query": )" + quoted[next]) + ", " + bodies[next];
            expected += "]}";
            EXPECT_EQ(record.end, expected.size());
            EXPECT_TRUE(record.evaluations == 1 || record.end - begin <= bytes);
        }
        EXPECT_EQ(next, members.size());
        EXPECT_EQ(text.text(), expected) << bytes;
    }
}

TEST(AnswersWriter, NumbersAreBareInTsvWhereTurtleAllowsIt) {
    TextTerms terms;
    const auto cell = [&](std::string_view text, std::string_view type) {
        const std::string datatype = std::string(kXsd) + std::string(type);
        const std::vector<TermId> column = {terms.id_of(literal(text, datatype))};
        const std::string found = whole(ResultFormat::Tsv, {{"x"}, {{column}}, 1}, terms);
        return found.substr(3, 1) != "\"";
    };
    for (const char* text : {"1", "-1", "+07"}) EXPECT_TRUE(cell(text, "integer")) << text;
    for (const char* text : {"", "+", "1.0", "1e0", "a"}) EXPECT_FALSE(cell(text, "integer")) << text;
    for (const char* text : {"1.0", ".5", "-.5"}) EXPECT_TRUE(cell(text, "decimal")) << text;
    for (const char* text : {"1", "1.", ".", "1.0e0"}) EXPECT_FALSE(cell(text, "decimal")) << text;
    for (const char* text : {"1e0", "1.E+5", ".5e-1", "1.5e3"}) EXPECT_TRUE(cell(text, "double")) << text;
    for (const char* text : {"1", "1.5", "e5", ".e5", "1e", "1e+", "INF"}) EXPECT_FALSE(cell(text, "double")) << text;
    EXPECT_FALSE(cell("1", "int"));
}

}  // namespace
}  // namespace penstock
