#include <algorithm>
#include <random>

#include "expr/compare.hpp"
#include "expr/datatypes.hpp"
#include "expr/frame.hpp"
#include "expr_support.hpp"

namespace penstock::test {
namespace {

using expr::Comparison;
using expr::Truth;
using expr::Value;
using expr::ValueType;

class Values : public ExpressionTest {
protected:
    Value value(std::string_view lexical, const std::string& xsd) {
        datatype_ = std::string(kXsd) + xsd;
        return expr::parse_value({Kind::Literal, lexical, datatype_, {}});
    }
    int order(std::string_view a, std::string_view b) { return order_compare(terms(a), terms(b), local); }

private:
    std::string datatype_;
};

constexpr const char* kDatatypes[] = {"string",
                                      "boolean",
                                      "decimal",
                                      "integer",
                                      "float",
                                      "double",
                                      "dateTime",
                                      "date",
                                      "time",
                                      "duration",
                                      "byte",
                                      "unsignedLong",
                                      "nonPositiveInteger",
                                      "gYear",
                                      "dateTimeStamp",
                                      "dayTimeDuration",
                                      "yearMonthDuration"};

TEST_F(Values, LexicalFormsDecideTheType) {
    const std::tuple<const char*, const char*, ValueType> cases[] = {
        {"1", "integer", ValueType::Integer},
        {"1.0", "integer", ValueType::Malformed},
        {"256", "unsignedByte", ValueType::Malformed},
        {"-129", "byte", ValueType::Malformed},
        {"0", "positiveInteger", ValueType::Malformed},
        {"340282366920938463463374607431768211456", "nonNegativeInteger", ValueType::Huge},
        {"-340282366920938463463374607431768211456", "nonNegativeInteger", ValueType::Malformed},
        {"1e5", "decimal", ValueType::Malformed},
        {"1e5", "double", ValueType::Double},
        {"yes", "boolean", ValueType::Malformed},
        {"2008-02-29", "date", ValueType::Date},
        {"2009-02-29", "date", ValueType::Opaque},
        {"2100-02-29", "date", ValueType::Opaque},
        {"2000-02-29Z", "date", ValueType::Date},
        {"0000-01-01", "date", ValueType::Date},
        {"02008-02-28", "date", ValueType::Opaque},
        {"12008-02-28", "date", ValueType::Date},
        {"2008-2-28", "date", ValueType::Opaque},
        {"2008-13-01", "date", ValueType::Opaque},
        {"2008-01-01+14:00", "date", ValueType::Date},
        {"2008-01-01+14:01", "date", ValueType::Opaque},
        {"2008-01-01+15:00", "date", ValueType::Opaque},
        {"999999999-12-31", "date", ValueType::Date},
        {"999999999999-12-31", "date", ValueType::Opaque},
        {"2008-01-01T24:00:00", "dateTime", ValueType::DateTime},
        {"2008-01-01T24:00:01", "dateTime", ValueType::Opaque},
        {"2008-01-01T23:59:60", "dateTime", ValueType::Opaque},
        {"2008-01-01T23:59:59.", "dateTime", ValueType::Opaque},
        {"2008-01-01T23:59:59.123456789012345678", "dateTime", ValueType::DateTime},
        {"2008-01-01T23:59:59.1234567890123456789", "dateTime", ValueType::Opaque},
        {"2008-01-01 23:59:59", "dateTime", ValueType::Opaque},
        {"2008-01-01T23:59:59", "dateTimeStamp", ValueType::Opaque},
        {"2008-01-01T23:59:59Z", "dateTimeStamp", ValueType::DateTime},
        {"24:00:00", "time", ValueType::Time},
        {"10:00", "time", ValueType::Opaque},
        {"P1Y2M3DT4H5M6.7S", "duration", ValueType::Duration},
        {"-P1D", "dayTimeDuration", ValueType::DayTimeDuration},
        {"P1M", "dayTimeDuration", ValueType::Opaque},
        {"P1D", "yearMonthDuration", ValueType::Opaque},
        {"P", "duration", ValueType::Opaque},
        {"PT", "duration", ValueType::Opaque},
        {"P1DT", "duration", ValueType::Opaque},
        {"P1M1Y", "duration", ValueType::Opaque},
        {"P1.5D", "duration", ValueType::Opaque},
        {"P99999999999999999999Y", "duration", ValueType::Opaque},
        {"P99999999999999D", "duration", ValueType::Opaque},
        {"P99999999999999999D", "duration", ValueType::Opaque},
        {"P99999999999D", "duration", ValueType::Duration},
        {"2008", "gYear", ValueType::Opaque},
    };
    for (const auto& [lexical, xsd, type] : cases)
        EXPECT_EQ(static_cast<int>(value(lexical, xsd).type), static_cast<int>(type)) << lexical << " " << xsd;
}

TEST_F(Values, CanonicalSpellingsOfTimesAndDurations) {
    const std::tuple<const char*, const char*, const char*> cases[] = {
        {"2008-01-01T24:00:00", "dateTime", "2008-01-02T00:00:00"},
        {"-0001-12-31T23:59:59.500+00:00", "dateTime", "-0001-12-31T23:59:59.5Z"},
        {"12008-01-01", "date", "12008-01-01"},
        {"10:05:00.000-05:30", "time", "10:05:00-05:30"},
        {"P13M", "yearMonthDuration", "P1Y1M"},
        {"P0Y", "yearMonthDuration", "P0M"},
        {"PT36H", "dayTimeDuration", "P1DT12H"},
        {"PT0.0S", "dayTimeDuration", "PT0S"},
        {"-PT90.50S", "dayTimeDuration", "-PT1M30.5S"},
        {"-P1Y2M3DT4H5M6.7S", "duration", "-P1Y2M3DT4H5M6.7S"},
    };
    for (const auto& [lexical, xsd, canonical] : cases) {
        std::string scratch;
        EXPECT_EQ(expr::canonical_text(value(lexical, xsd), scratch), canonical) << lexical;
    }
}

TEST_F(Values, CalendarsAgreeOnEveryDay) {
    for (std::int64_t day = -800'000; day < 800'000; day += 13) {
        const Value date = Value::moment(ValueType::Date, {day * expr::kDay, expr::kNoTimezone});
        std::string scratch;
        const Value back = value(expr::canonical_text(date, scratch), "date");
        ASSERT_EQ(back.type, ValueType::Date) << scratch;
        EXPECT_TRUE(back.number == date.number) << scratch;
    }
}

TEST_F(Values, AnyTextIsParsedOrOpaque) {
    std::mt19937_64 random(11);
    const std::string_view alphabet = "0123456789+-.:TZPYMDHSeEINFaN ";
    for (int i = 0; i < 200'000; ++i) {
        std::string text;
        for (std::size_t n = random() % 24; n > 0; --n) text += alphabet[random() % alphabet.size()];
        const Value parsed = value(text, kDatatypes[random() % std::size(kDatatypes)]);
        std::string scratch;
        const std::string canonical(expr::canonical_text(parsed, scratch));
        if (parsed.type >= ValueType::Malformed || parsed.type == ValueType::String) continue;
        const Value again = expr::parse_value({Kind::Literal, canonical, expr::datatype_iri(parsed), {}});
        EXPECT_EQ(again.type, parsed.type) << text << " " << canonical;
        EXPECT_EQ(expr::value_order(again, parsed), 0) << text << " " << canonical;
    }
}

TEST_F(Values, LongLiteralsAreAccepted) {
    const std::string digits(1'000'000, '7');
    for (const char* xsd : kDatatypes) {
        for (const std::string& text : {digits, "-" + digits, "0." + digits, "1e" + digits, digits + "-01-01",
                                        "P" + digits + "D", "PT0." + digits + "S", "12:00:00." + digits})
            expr::effective_boolean(value(text, xsd));
    }
    const TermId text = terms.string(digits);
    EXPECT_EQ(order_compare(text, terms.string(digits + "8"), local), -1);
    Table rows;
    rows.rows = 1;
    rows.slots = {slot("x")};
    rows.columns = {{text}};
    EXPECT_EQ(run("(strlen ?x)", rows)[0], terms("1000000"));
    EXPECT_EQ(run("(substr ?x 1000000)", rows)[0], terms("\"7\""));
    EXPECT_EQ(run("(strlen (encode_for_uri (concat ?x \" \" ?x)))", rows)[0], terms("2000003"));
    EXPECT_EQ(run("(regex ?x \"78\")", rows)[0], terms("false"));
    EXPECT_EQ(run("(cast:integer ?x)", rows)[0], kUnbound);
    EXPECT_EQ(run("(cast:dateTime ?x)", rows)[0], kUnbound);
}

TEST_F(Values, TextsThatGrowWithoutEndAreALimitError) {
    Table rows;
    rows.rows = 1;
    rows.slots = {slot("x")};
    rows.columns = {{terms.string(std::string(1'000'000, 'a'))}};
    std::string doubled = "?x";
    for (int i = 0; i < 12; ++i) doubled = "(concat " + doubled + " " + doubled + ")";
    Budget small(0, 20'000'000);
    ExprContext limited{local, small};
    Column out;
    EXPECT_THROW(Expression::compile(parse(doubled))->evaluate(rows, limited, out), LimitError);
    EXPECT_THROW(run("(replace ?x \"a\" ?x)", rows), LimitError);
}

// SPARQL 1.1 §15.1.
TEST_F(Values, OrderByPutsKindsAfterEachOther) {
    const char* sorted[] = {"err",
                            "_:a",
                            "<http://example/a>",
                            "<http://example/b>",
                            "\"-INF\"^^double",
                            "-1",
                            "0.5",
                            "1",
                            "1.5e0",
                            "2",
                            "\"INF\"^^double",
                            "\"NaN\"^^double",
                            "\"\"",
                            "\"a\"",
                            "\"a\"@de",
                            "\"a\"@en",
                            "\"b\"",
                            "\"longer than seven bytes\"",
                            "false",
                            "true",
                            "\"2008-01-01T00:00:00+01:00\"^^dateTime",
                            "\"2008-01-01T00:00:00\"^^dateTime",
                            "\"2008-01-01T00:00:00Z\"^^dateTime",
                            "\"2008-01-02\"^^date",
                            "\"10:00:00\"^^time",
                            "\"P1D\"^^dayTimeDuration",
                            "\"P1M\"^^yearMonthDuration",
                            "\"x\"^^<http://example/t>",
                            "\"x\"^^integer"};
    for (std::size_t i = 0; i < std::size(sorted); ++i)
        for (std::size_t j = 0; j < std::size(sorted); ++j)
            EXPECT_EQ(order(sorted[i], sorted[j]), (i > j) - (i < j)) << sorted[i] << " " << sorted[j];
}

TEST_F(Values, OrderIsTotalAndAgreesWithLess) {
    std::vector<TermId> pool = {kUnbound, terms("_:a"), terms("_:b"), local.fresh_blank()};
    for (const char* number : {"1", "01", "1.0", "1.00", "0.1", "-0", "0", "9007199254740993", "9007199254740992",
                               "170141183460469231731687303715884105728", "170141183460469231731687303715884105729",
                               "1e0", "0.1e0", "INF", "NaN", "-0.0", "16777217", "x"})
        for (const char* xsd : {"integer", "decimal", "double", "float", "byte", "string"})
            pool.push_back(terms.typed(number, xsd));
    for (const char* moment : {"2008-01-01T00:00:00Z", "2008-01-01T00:00:00", "2008-01-01T01:00:00+01:00",
                               "2008-01-01T13:00:00Z", "2007-12-31T11:00:00Z", "2007-12-31T24:00:00Z"})
        pool.push_back(terms.typed(moment, "dateTime"));
    for (const char* duration : {"P1M", "P30D", "P31D", "PT24H", "P1D", "P1Y", "P12M"})
        pool.push_back(terms.typed(duration, "duration"));
    for (const char* text : {"\"a\"@en", "\"a\"@fr", "\"b\"@en", "<a:a>", "<a:b>", "true", "\"1\"^^boolean"})
        pool.push_back(terms(text));

    Table unit;
    unit.rows = 1;
    expr::Frame frame(unit, context);
    for (const TermId a : pool) {
        for (const TermId b : pool) {
            const int ab = order_compare(a, b, local);
            EXPECT_EQ(ab == 0, a == b) << terms.show(a) << " " << terms.show(b);
            EXPECT_EQ(ab < 0, order_compare(b, a, local) > 0) << terms.show(a) << " " << terms.show(b);
            const Value x = frame.decode(a), y = frame.decode(b);
            if (compare(Comparison::Less, x, y) == Truth::True && x.type != ValueType::Duration) {
                EXPECT_LT(ab, 0) << terms.show(a) << " " << terms.show(b);
            }
            for (const TermId c : pool)
                if (ab < 0 && order_compare(b, c, local) < 0) {
                    EXPECT_LT(order_compare(a, c, local), 0)
                        << terms.show(a) << " " << terms.show(b) << " " << terms.show(c);
                }
        }
    }
}

TEST_F(Values, ComparisonsOfIdsAndOfValuesAgree) {
    std::vector<TermId> pool;
    for (const char* text : {"1", "1.0", "1e0", "2", "\"NaN\"^^double", "\"1\"^^float", "\"a\"", "\"a\"@en", "<a:a>",
                             "<a:b>", "_:a", "true", "\"x\"^^integer", "\"x\"^^<a:t>", "err", "9007199254740993",
                             "9007199254740992e0", "\"a string of many bytes\"", "\"2008-01-01\"^^date"})
        pool.push_back(terms(text));
    Table rows;
    rows.slots = {slot("x"), slot("y")};
    rows.columns.resize(2);
    for (const TermId a : pool)
        for (const TermId b : pool) rows.columns[0].push_back(a), rows.columns[1].push_back(b);
    rows.rows = rows.columns[0].size();
    for (const char* symbol : {"=", "!=", "<", ">", "<=", ">="}) {
        const std::string operation(symbol);
        const Column by_id = run("(" + operation + " ?x ?y)", rows);
        const Column by_value = run("(" + operation + " (coalesce ?x) (coalesce ?y))", rows);
        for (std::size_t i = 0; i < rows.rows; ++i)
            EXPECT_EQ(by_id[i], by_value[i])
                << terms.show(rows.columns[0][i]) << symbol << terms.show(rows.columns[1][i]);
    }
}

}  // namespace
}  // namespace penstock::test
