#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rdf/inline_literal.hpp"

namespace penstock {
namespace {

std::string xsd(std::string_view name) { return std::string(kXsd) + std::string(name); }

const std::vector<std::string>& datatypes() {
    static const std::vector<std::string> all = [] {
        std::vector<std::string> out;
        for (int i = 0; i < kIntegerTypes; ++i) out.emplace_back(integer_type_iri(static_cast<IntegerType>(i)));
        for (const char* name : {"decimal", "double", "float", "boolean", "dateTime", "date", "string"})
            out.push_back(xsd(name));
        return out;
    }();
    return all;
}

TermId encode(const std::string& lexical, const std::string& type) { return encode_inline(lexical, xsd(type), {}); }

/// Encodes; where the literal is inline, demands that it comes back byte for byte. Returns whether it was inline.
bool round_trips(const std::string& lexical, const std::string& datatype) {
    const TermId id = encode_inline(lexical, datatype, {});
    if (id == kUnbound) return false;
    std::string scratch;
    const TermView view = decode_inline(id, scratch);
    EXPECT_EQ(view.lexical, lexical) << datatype;
    EXPECT_EQ(view.datatype, datatype) << lexical;
    EXPECT_EQ(view.kind, Kind::Literal);
    EXPECT_TRUE(view.lang.empty());
    EXPECT_TRUE(is_valid_inline(id));
    EXPECT_NE(tag_of(id), Tag::Iri);
    return true;
}

TEST(InlineLiteral, UsualSpellingsAreInline) {
    const std::vector<std::pair<const char*, const char*>> usual = {
        {"0", "integer"},
        {"-5", "integer"},
        {"+5", "integer"},
        {"18014398509481983", "integer"},
        {"-18014398509481984", "integer"},
        {"127", "byte"},
        {"-32768", "short"},
        {"255", "unsignedByte"},
        {"54", "decimal"},
        {"54.0", "decimal"},
        {"-0.25", "decimal"},
        {"0.000001", "decimal"},
        {"54", "double"},
        {"54.0", "double"},
        {"5.4E1", "double"},
        {"5.4e1", "double"},
        {"1.0E-7", "double"},
        {"1e-05", "double"},
        {"5.400000e+01", "double"},
        {"-0.0", "double"},
        {"-0.0E0", "double"},
        {"INF", "double"},
        {"-INF", "double"},
        {"NaN", "double"},
        {"56.15674", "double"},
        {"10.204567891234", "double"},
        {"9007199254740991", "double"},
        {"0.1", "float"},
        {"3.14", "float"},
        {"NaN", "float"},
        {"true", "boolean"},
        {"false", "boolean"},
        {"1", "boolean"},
        {"0", "boolean"},
        {"2014-08-01T07:36:12", "dateTime"},
        {"2014-08-01T07:36:12Z", "dateTime"},
        {"2014-08-01T07:36:12.5+02:00", "dateTime"},
        {"2014-08-01T23:59:59.999-14:00", "dateTime"},
        {"1969-12-31T23:59:59.01", "dateTime"},
        {"0001-01-01T00:00:00+14:00", "dateTime"},
        {"2000-02-29", "date"},
        {"1900-02-28Z", "date"},
        {"2014-08-01-05:30", "date"},
        {"9999-12-31", "date"},
        {"", "string"},
        {"abc", "string"},
        {"1234567", "string"},
        {"é€", "string"},
    };
    for (const auto& [lexical, type] : usual) EXPECT_TRUE(round_trips(lexical, xsd(type))) << lexical << " " << type;
}

TEST(InlineLiteral, OddIllTypedOrHugeSpellingsGoToTheDictionary) {
    const std::vector<std::pair<const char*, const char*>> odd = {
        {"", "integer"},
        {"-0", "integer"},
        {"01", "integer"},
        {"00", "integer"},
        {"1.0", "integer"},
        {" 1", "integer"},
        {"1 ", "integer"},
        {"+-1", "integer"},
        {"18014398509481984", "integer"},
        {"99999999999999999999", "integer"},
        {"300", "byte"},
        {"-1", "unsignedInt"},
        {"0", "positiveInteger"},
        {"1", "nonPositiveInteger"},
        {"0", "negativeInteger"},
        {"4294967296", "unsignedInt"},
        {"abc", "integer"},
        {"１", "integer"},
        {".5", "decimal"},
        {"5.", "decimal"},
        {"-0.0", "decimal"},
        {"+5.0", "decimal"},
        {"05.0", "decimal"},
        {"1E3", "decimal"},
        {"1234567890123456789", "decimal"},
        {"0.1234567890123456789", "decimal"},
        {"5.E1", "double"},
        {"1E", "double"},
        {"1e+5", "double"},
        {"1e05", "double"},
        {"1E-0", "double"},
        {"1E23", "double"},
        {"1E400", "double"},
        {"9007199254740993", "double"},
        {"inf", "double"},
        {"nan", "double"},
        {"1E1E1", "double"},
        {"--1", "double"},
        {"TRUE", "boolean"},
        {"2", "boolean"},
        {"", "boolean"},
        {"2014-02-29", "date"},
        {"1900-02-29", "date"},
        {"2014-13-01", "date"},
        {"2014-00-01", "date"},
        {"12014-01-01", "date"},
        {"-0001-01-01", "date"},
        {"2014-01-01z", "date"},
        {"2014-01-01-00:00", "date"},
        {"2014-01-01+14:01", "date"},
        {"2014-01-01+1:00", "date"},
        {"2014-08-01T24:00:00", "dateTime"},
        {"2014-08-01T07:36:60", "dateTime"},
        {"2014-08-01T07:36:12.", "dateTime"},
        {"2014-08-01 07:36:12", "dateTime"},
        {"2014-08-01T07:36:12.1234", "dateTime"},
        {"5000-01-01T00:00:00", "dateTime"},
        {"0000-01-01T00:00:00", "nothing"},
        {"12345678", "string"},
        {"x", "normalizedString"},
        {"x", ""},
    };
    for (const auto& [lexical, type] : odd) EXPECT_EQ(encode(lexical, type), kUnbound) << lexical << " " << type;
    EXPECT_EQ(encode_inline("a", kRdfLangString, "en"), kUnbound);
    EXPECT_EQ(encode_inline("a", kXsdString, "en"), kUnbound);
    EXPECT_EQ(encode_inline("5", "http://example.org/integer", {}), kUnbound);
    EXPECT_EQ(encode_inline("5", "", {}), kUnbound);
}

TEST(InlineLiteral, RandomSpellingsRoundTripExactly) {
    std::mt19937_64 random(42);
    const std::string alphabet = "0123456789000111+-.eETZ:INFNaN truefals\0\x80";
    std::size_t inlined = 0;
    for (int i = 0; i < 400'000; ++i) {
        std::string lexical(random() % 12, ' ');
        for (char& c : lexical) c = alphabet[random() % alphabet.size()];
        inlined += round_trips(lexical, datatypes()[random() % datatypes().size()]) ? 1 : 0;
    }
    EXPECT_GT(inlined, 10'000U);
}

/// Spellings near the valid ones: one byte changed, dropped or doubled.
TEST(InlineLiteral, MutatedSpellingsRoundTripExactly) {
    std::mt19937_64 random(7);
    const std::vector<std::string> seeds = {"2014-08-01T07:36:12.125+02:00",
                                            "2000-02-29Z",
                                            "-1234567890.0123456",
                                            "-1.2345678901E-21",
                                            "18014398509481983",
                                            "9007199254740991",
                                            "0.00000000000000001",
                                            "1e+16",
                                            "true"};
    const std::string alphabet = "0123456789+-.eETZ:";
    for (int i = 0; i < 400'000; ++i) {
        std::string lexical = seeds[random() % seeds.size()];
        for (std::uint64_t edits = random() % 3 + 1; edits > 0 && !lexical.empty(); --edits) {
            const std::size_t at = random() % lexical.size();
            switch (random() % 3) {
                case 0:
                    lexical[at] = alphabet[random() % alphabet.size()];
                    break;
                case 1:
                    lexical.erase(at, 1);
                    break;
                default:
                    lexical.insert(at, 1, alphabet[random() % alphabet.size()]);
            }
        }
        for (const std::string& datatype : datatypes()) round_trips(lexical, datatype);
    }
}

TEST(InlineLiteral, RandomIdsAreValidOnlyWhereTheyEncodeThemselves) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 200'000; ++i) {
        const TermId id = make_id(static_cast<Tag>(3 + random() % 8), random() >> (random() % 60));
        (void)is_valid_inline(id);  // must not crash, whatever the id
    }
    EXPECT_FALSE(is_valid_inline(make_id(Tag::Integer, std::uint64_t{15} << 56)));
    EXPECT_FALSE(is_valid_inline(make_id(Tag::Boolean, 4)));
    EXPECT_FALSE(is_valid_inline(make_id(Tag::String, 9)));
    EXPECT_FALSE(is_valid_inline(make_id(Tag::Decimal, std::uint64_t{31} << 55)));
}

TEST(InlineLiteral, NumbersHaveTheValuesOfTheirSpellings) {
    EXPECT_EQ(integer_value(encode("-42", "integer")), -42);
    EXPECT_EQ(integer_value(encode("+42", "long")), 42);
    EXPECT_EQ(integer_type(encode("42", "unsignedShort")), IntegerType::UnsignedShort);
    EXPECT_EQ(make_integer(-42), encode("-42", "integer"));
    EXPECT_EQ(make_integer(7, IntegerType::Byte), encode("7", "byte"));
    EXPECT_EQ(make_integer(kInlineIntegerMin), encode("-18014398509481984", "integer"));
    EXPECT_EQ(decimal_value(encode("-1.50", "decimal")).mantissa, -150);
    EXPECT_EQ(decimal_value(encode("-1.50", "decimal")).scale, 2);
    EXPECT_EQ(make_decimal({-150, 2}), encode("-1.50", "decimal"));
    EXPECT_TRUE(boolean_value(encode("1", "boolean")));
    EXPECT_FALSE(boolean_value(encode("false", "boolean")));
    EXPECT_EQ(make_boolean(true), encode("true", "boolean"));
    EXPECT_TRUE(std::isnan(double_value(encode("NaN", "double"))));
    EXPECT_EQ(double_value(encode("-INF", "double")), -HUGE_VAL);
    EXPECT_EQ(float_value(encode("+INF", "float")), HUGE_VALF);
    EXPECT_TRUE(std::signbit(double_value(encode("-0.0", "double"))));
}

TEST(InlineLiteral, DoublesAndFloatsAreCorrectlyRounded) {
    std::mt19937_64 random(11);
    std::size_t doubles = 0;
    std::size_t floats = 0;
    for (int i = 0; i < 300'000; ++i) {
        std::string lexical = random() % 2 != 0 ? "-" : "";
        lexical += std::to_string(random() >> (random() % 60 + 4));
        if (random() % 2 != 0) lexical += "." + std::to_string(random() >> (random() % 60 + 4));
        if (random() % 2 != 0) lexical += "E" + std::to_string(static_cast<int>(random() % 80) - 40);
        if (const TermId id = encode(lexical, "double"); id != kUnbound) {
            ++doubles;
            EXPECT_EQ(double_value(id), std::strtod(lexical.c_str(), nullptr)) << lexical;
        }
        if (const TermId id = encode(lexical, "float"); id != kUnbound) {
            ++floats;
            EXPECT_EQ(float_value(id), std::strtof(lexical.c_str(), nullptr)) << lexical;
        }
    }
    EXPECT_GT(doubles, 50'000U);
    EXPECT_GT(floats, 50'000U);
}

TEST(InlineLiteral, ShortestDoublesOfSensorsAreInline) {
    std::mt19937_64 random(5);
    std::size_t inlined = 0;
    for (int i = 0; i < 10'000; ++i) {
        char text[32];
        std::snprintf(text, sizeof text, "%.13f", 10.0 + static_cast<double>(random() % 1'000'000) / 1e7);
        inlined += encode(text, "double") != kUnbound ? 1 : 0;
    }
    EXPECT_EQ(inlined, 10'000U);
}

TEST(InlineLiteral, InstantsAreUtcAndSortByTime) {
    const DateTimeParts parts = datetime_value(encode("2014-08-01T02:00:00.250+02:00", "dateTime"));
    EXPECT_EQ(parts.millis, 1406851200250);
    EXPECT_TRUE(parts.has_timezone);
    EXPECT_EQ(parts.offset_minutes, 120);
    EXPECT_EQ(parts.local_millis(), 1406858400250);
    EXPECT_FALSE(datetime_value(encode("2014-08-01T02:00:00", "dateTime")).has_timezone);
    EXPECT_TRUE(datetime_value(encode("2014-08-01T02:00:00Z", "dateTime")).zulu);
    EXPECT_LT(encode("1914-08-01T02:00:00Z", "dateTime"), encode("1914-08-01T02:00:00-01:00", "dateTime"));
    const DateParts date = date_value(encode("1970-01-02-12:00", "date"));
    EXPECT_EQ(date.days, 1);
    EXPECT_EQ(date.start_millis(), 86'400'000 + 12 * 3'600'000);
    for (std::int64_t days = -800'000; days < 800'000; days += 13)
        EXPECT_EQ(days_from_civil(civil_from_days(days)), days);
}

TEST(InlineLiteral, ShortStringsSortAsTheirBytes) {
    const std::vector<std::string> sorted = {"", std::string(1, '\0'), "a", std::string("a\0", 2), "ab", "abcdefg", "b",
                                             "é"};
    for (std::size_t i = 1; i < sorted.size(); ++i)
        EXPECT_LT(make_short_string(sorted[i - 1]), make_short_string(sorted[i]));
    char buffer[8];
    for (const std::string& text : sorted) EXPECT_EQ(short_string(make_short_string(text), buffer), text);
}

TEST(InlineLiteral, BlankNodesAreSpeltByTheirNumber) {
    std::string scratch;
    const TermView view = decode_inline(make_id(Tag::Blank, 17), scratch);
    EXPECT_EQ(view.kind, Kind::Blank);
    EXPECT_EQ(view.lexical, "b17");
}

}  // namespace
}  // namespace penstock
