#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "answers/avro_records.hpp"
#include "answers/text_terms.hpp"
#include "errors.hpp"

namespace penstock {
namespace {

using namespace std::string_literals;

struct Fixture : testing::Test {
    TermId literal(std::string_view text, std::string_view datatype = kXsdString) {
        return terms.id_of({Kind::Literal, text, datatype, {}});
    }
    std::vector<std::string> records(const MemberRows& rows, const std::vector<AvroCell>& cells,
                                     const std::vector<TermId>& members) {
        TextBuffer text;
        const AvroRecords made = append_avro_records(text, names, members, {"H", "I", cells}, rows, terms);
        counts = made.counts;
        std::vector<std::string> found;
        std::size_t at = 0;
        for (const std::size_t end : made.ends) {
            found.emplace_back(text.text().substr(at, end - at));
            at = end;
        }
        return found;
    }
    TextTerms terms;
    QueryNames names{{"a", "bc", "d"}};
    std::vector<std::size_t> counts;
};

using AvroRecordsTest = Fixture;

TEST_F(AvroRecordsTest, EachRowIsARecordAndAnAnswerWithoutRowsIsOneToo) {
    const std::vector<TermId> x = {terms.id_of({Kind::Iri, "urn:x", {}, {}}), kUnbound, literal("l")};
    const std::vector<TermId> y = {literal("1"), terms.id_of({Kind::Blank, "b", {}, {}}), literal("1")};
    const std::vector<TermId> present = {1, 3};
    const std::vector<std::int64_t> starts = {0, 2, 3};
    const MemberRows rows{AnswerForm::Solutions, {{"x", "y"}, {{x}, {y}}, 3}, present, starts};
    const auto found = records(rows, {AvroCell::String, AvroCell::String}, {1, 2, 3});
    // head, name, instant, no error, number of rows, row, cells
    EXPECT_EQ(found, (std::vector<std::string>{"H\2aI\0\4\0\2\12urn:x\2\2"s + "1", "H\2aI\0\4\2\0\2\6_:b"s,
                                               "H\4bcI\0\0\0\0\0"s, "H\2dI\0\2\0\2\2l\2\2"s + "1"}));
    EXPECT_EQ(counts, (std::vector<std::size_t>{2, 1, 1}));
}

TEST_F(AvroRecordsTest, TypedCellsAreNumbersAndBooleans) {
    const std::vector<TermId> l = {literal("-65", "urn:long"), literal("9223372036854775807", "urn:long")};
    const std::vector<TermId> d = {literal("1.0E0", "urn:double"), literal("-INF", "urn:double")};
    const std::vector<TermId> b = {literal("true", "urn:boolean"), literal("false", "urn:boolean")};
    const std::vector<TermId> present = {1};
    const std::vector<std::int64_t> starts = {0, 2};
    const MemberRows rows{AnswerForm::Solutions, {{"l", "d", "b"}, {{l}, {d}, {b}}, 2}, present, starts};
    const auto found = records(rows, {AvroCell::Long, AvroCell::Double, AvroCell::Boolean}, {1});
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].substr(6), "\0\2\x81\1\2\0\0\0\0\0\0\xF0\x3F\2\1"s);
    EXPECT_EQ(found[1].substr(6), "\2\2\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\1\2\0\0\0\0\0\0\xF0\xFF\2\0"s);
    for (const TermId bad : {literal("1.5"), literal("9223372036854775808"), terms.id_of({Kind::Iri, "1", {}, {}})}) {
        const std::vector<TermId> column = {bad};
        const std::vector<std::int64_t> one = {0, 1};
        EXPECT_THROW(records({AnswerForm::Solutions, {{"l"}, {{column}}, 1}, present, one}, {AvroCell::Long}, {1}),
                     LimitError);
    }
}

TEST_F(AvroRecordsTest, OtherAnswersAreOneRecord) {
    const auto iri = [&](std::string_view text) { return terms.id_of({Kind::Iri, text, {}, {}}); };
    const std::vector<TermId> present = {2};
    const std::vector<std::int64_t> starts = {0, 2};
    EXPECT_EQ(records({AnswerForm::Truth, {{}, {}, 2}, present, starts}, {}, {1, 2}),
              (std::vector<std::string>{"H\2aI\0\2\0"s, "H\4bcI\0\2\1"s}));
    const std::vector<TermId> s = {iri("b"), iri("a")}, p = {iri("p"), iri("p")};
    EXPECT_EQ(records({AnswerForm::Triples, {{"s", "p", "o"}, {{s}, {p}, {s}}, 2}, present, starts}, {}, {1, 2}),
              (std::vector<std::string>{"H\2aI\0\2\0"s, "H\4bcI\0\2\x38<a> <p> <a> .\n<b> <p> <b> .\n"s}));
}

}  // namespace
}  // namespace penstock
