#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "errors.hpp"
#include "rdf/ntriples.hpp"

namespace penstock {
namespace {

class NTriples : public testing::Test {
protected:
    QuadColumns parse(std::string_view document, const ParseOptions& options = {}) {
        BlankScope scope;
        return parse_nquads(dictionary, document, options, scope);
    }
    /// The message of the DataError that the document must raise.
    std::string error(std::string_view document, const ParseOptions& options = {}) {
        try {
            parse(document, options);
        } catch (const DataError& e) {
            return e.what();
        }
        return "no error";
    }
    TermView view(TermId id) { return dictionary.view(id, scratch); }
    std::string lexical(TermId id) { return std::string(view(id).lexical); }

    Dictionary dictionary;
    std::string scratch;
};

constexpr const char* kPrefix = "<http://e/s> <http://e/p> ";

TEST_F(NTriples, ReadsTriplesAndQuads) {
    const QuadColumns q = parse(
        "<http://e/s> <http://e/p> <http://e/o> .\n"
        "# a comment\n"
        "\n"
        "  <http://e/s>\t<http://e/p> \"text\" <http://e/g> . # another\r\n"
        "<http://e/s><http://e/p>\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>.\r"
        "_:a <http://e/p> _:b _:a.");
    ASSERT_EQ(q.subjects.size(), 4U);
    EXPECT_EQ(q.lines, 6U);
    EXPECT_EQ(lexical(q.subjects[0]), "http://e/s");
    EXPECT_EQ(lexical(q.predicates[2]), "http://e/p");
    EXPECT_EQ(lexical(q.objects[0]), "http://e/o");
    EXPECT_EQ(q.objects[2], make_integer(5));
    EXPECT_EQ(q.graphs[0], kUnbound);
    EXPECT_EQ(lexical(q.graphs[1]), "http://e/g");
    EXPECT_EQ(tag_of(q.subjects[3]), Tag::Blank);
    EXPECT_NE(q.subjects[3], q.objects[3]);
    EXPECT_EQ(q.subjects[3], q.graphs[3]);
    EXPECT_TRUE(q.timestamps.empty());
    EXPECT_EQ(q.bad_count, 0U);
}

TEST_F(NTriples, ReadsNothingFromNothing) {
    for (const char* document : {"", "\n", "\r\n", "   ", "# only a comment", "\n\n# x\n\t\n"})
        EXPECT_TRUE(parse(document).subjects.empty());
}

TEST_F(NTriples, KeepsLexicalFormsTagsAndEscapes) {
    const std::string p = kPrefix;
    const QuadColumns q =
        parse(p + "\"01\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n" + p + "\"Grüße\"@de-CH .\n" + p +
              "\"\\t\\b\\n\\r\\f\\\"\\'\\\\ \\u00e9\\U0001F600\" .\n" + p + "\"tab\there\x01\" .\n" + p +
              "\"\"@en-Latn-1994 .\n" + p + "<http://e/\\u00E9t\xC3\xA9> .\n" + p + "\"a\\u0000b long enough\" .\n");
    EXPECT_EQ(view(q.objects[0]).lexical, "01");
    EXPECT_EQ(view(q.objects[0]).datatype, "http://www.w3.org/2001/XMLSchema#integer");
    EXPECT_EQ(view(q.objects[1]).lexical, "Grüße");
    EXPECT_EQ(view(q.objects[1]).lang, "de-ch");
    EXPECT_EQ(view(q.objects[1]).datatype, kRdfLangString);
    EXPECT_EQ(view(q.objects[2]).lexical, "\t\b\n\r\f\"'\\ é😀");
    EXPECT_EQ(view(q.objects[3]).lexical, "tab\there\x01");
    EXPECT_EQ(view(q.objects[4]).lang, "en-latn-1994");
    EXPECT_EQ(view(q.objects[5]).lexical, "http://e/été");
    EXPECT_EQ(view(q.objects[6]).lexical, std::string_view("a\0b long enough", 15));
}

TEST_F(NTriples, RefusesWhatTheGrammarRefuses) {
    const std::vector<std::string> objects = {"<relative>",
                                              "<>",
                                              "<//host/x>",
                                              "<http://e/a b>",
                                              "<http://e/\\u0020>",
                                              "<http://e/\\u003e>",
                                              "<http://e/\\n>",
                                              "<http://e/\\u00ZZ>",
                                              "<http://e/\\U00110000>",
                                              "<http://e/\\uD800>",
                                              "<http://e/{x}>",
                                              "<http://e/a`b>",
                                              "<http://e/a|b>",
                                              "<http://e/a^b>",
                                              "<http://e/a\"b>",
                                              "<http://e/a<b>",
                                              "<http://e/a\tb>",
                                              "<http://e/a",
                                              "<http://e/a\nb>",
                                              "<http://e/\xC3>",
                                              "<http://e/\xED\xA0\x80>",
                                              "<1http://e>",
                                              "<:x>",
                                              "\"open",
                                              "\"a\nb\"",
                                              "\"a\rb\"",
                                              "\"bad \\x escape\"",
                                              "\"\\u12\"",
                                              "\"\\uDC00\"",
                                              "\"\\\"",
                                              "'single'",
                                              "\"\"\"long\"\"\"",
                                              "\"\xFF\"",
                                              "\"\xC0\x80\"",
                                              "\"\xF4\x90\x80\x80\"",
                                              "\"\xE2\x82\"",
                                              "\"x\"@",
                                              "\"x\"@1",
                                              "\"x\"@en-",
                                              "\"x\"@en_US",
                                              "\"x\"@abcdefghi",
                                              "\"x\"@en-abcdefghi",
                                              "\"x\"@ en",
                                              "\"x\"^<http://e/t>",
                                              "\"x\"^^e:t",
                                              "\"x\"^^<t>",
                                              "\"x\"^^\"t\"",
                                              "\"x\"@en^^<http://e/t>",
                                              "_:",
                                              "_:-a",
                                              "_:.a",
                                              "_ :a",
                                              "_::a",
                                              "_:a:b",
                                              "42",
                                              "true",
                                              "e:o",
                                              "[]",
                                              "a"};
    for (const std::string& object : objects) {
        EXPECT_NE(error(kPrefix + object + " .\n"), "no error") << object;
        ParseOptions lenient;
        lenient.strict = false;
        const QuadColumns q = parse("<http://e/s> <http://e/p> \"before\" .\n" + std::string(kPrefix) + object +
                                        " .\n<http://e/s> <http://e/p> \"after\" .\n",
                                    lenient);
        EXPECT_GE(q.subjects.size(), 2U) << object;
        EXPECT_GE(q.bad_count, 1U) << object;
        EXPECT_EQ(lexical(q.objects.front()), "before");
        EXPECT_EQ(lexical(q.objects.back()), "after");
    }
}

TEST_F(NTriples, RefusesOtherTermsAndLooseEnds) {
    for (const char* document :
         {"\"s\" <http://e/p> <http://e/o> .", "<http://e/s> _:p <http://e/o> .", "<http://e/s> \"p\" <http://e/o> .",
          "<http://e/s> <http://e/p> .", "<http://e/s> <http://e/p> <http://e/o>",
          "<http://e/s> <http://e/p> <http://e/o> ;",
          "<http://e/s> <http://e/p> <http://e/o> . <http://e/s> <http://e/p> <http://e/o> .",
          "<http://e/s> <http://e/p> <http://e/o> . x", "<http://e/s> <http://e/p> <http://e/o> \"g\" .",
          "<http://e/s> <http://e/p> <http://e/o> <http://e/g> <http://e/h> .",
          "<http://e/s>\n<http://e/p> <http://e/o> .", "@prefix e: <http://e/> .",
          "<http://e/s> <http://e/p> <http://e/o>, <http://e/o2> .", "\xEF\xBB\xBF", "."})
        EXPECT_NE(error(document), "no error") << document;
    ParseOptions triples;
    triples.quads = false;
    EXPECT_NE(error("<http://e/s> <http://e/p> <http://e/o> <http://e/g> .", triples), "no error");
}

TEST_F(NTriples, NamesLineColumnAndReason) {
    EXPECT_EQ(error("<http://e/s> <http://e/p> \"\xC3\xA9\" .\n<http://e/s> <http://e/p> é .\n"),
              "line 2, column 27: expected an object (an IRI, a blank node or a literal), found 'é'");
    EXPECT_EQ(error("<http://e/s> <http://e/p> \"ééé\" x"),
              "line 1, column 33: expected a graph (an IRI or a blank node) or '.', found 'x'");
    EXPECT_EQ(error("<http://e/s> <http://e/p> <o> ."),
              "line 1, column 27: not an absolute IRI: a scheme and a colon must come first");
    ParseOptions later;
    later.first_line = 1000;
    EXPECT_EQ(error("\r\n<http://e/s>", later), "line 1001, column 13: expected a predicate (an IRI), found the end");
}

TEST_F(NTriples, RefusesRdfStarAndRdf12ByName) {
    for (const char* document : {"<< <http://e/s> <http://e/p> <http://e/o> >> <http://e/p> <http://e/o> .",
                                 "<http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> <http://e/o> )>> .",
                                 "VERSION \"1.2\"", "<http://e/s> <http://e/p> \"x\"@ar--rtl ."}) {
        const std::string message = error(document);
        EXPECT_NE(message.find("not supported"), std::string::npos) << message;
    }
}

TEST_F(NTriples, CollectsBadLinesWithTheirBytes) {
    ParseOptions lenient;
    lenient.strict = false;
    lenient.max_bad = 2;
    const QuadColumns q = parse("garbage \xFF\r\n<http://e/s> <http://e/p> <http://e/o> .\nx\ny\nz", lenient);
    EXPECT_EQ(q.subjects.size(), 1U);
    ASSERT_EQ(q.bad.size(), 2U);
    EXPECT_EQ(q.bad_count, 4U);
    EXPECT_EQ(q.bad[0].line, 1U);
    EXPECT_EQ(q.bad[0].bytes, "garbage \xFF");
    EXPECT_EQ(q.bad[1].line, 3U);
    EXPECT_EQ(q.bad[1].bytes, "x");
}

TEST_F(NTriples, BadLinesLeaveNoTermsBehind) {
    ParseOptions lenient;
    lenient.strict = false;
    parse("<http://e/unwanted> <http://e/p> \"some long text\" nonsense\n<http://e/s> <http://e/p> <http://e/o> .\n",
          lenient);
    EXPECT_EQ(dictionary.find({Kind::Iri, "http://e/unwanted", {}, {}}), kUnbound);
    EXPECT_EQ(dictionary.size(), 3U);
}

TEST_F(NTriples, ReadsTimestamps) {
    ParseOptions options;
    options.timestamps = true;
    const QuadColumns q = parse(
        "1406851200000 <http://e/s> <http://e/p> <http://e/o> .\n-5\t_:a <http://e/p> \"x\" <http://e/g> .\n"
        "+7 _:a <http://e/p> \"x\" .\n",
        options);
    EXPECT_EQ(q.timestamps, (std::vector<std::int64_t>{1406851200000, -5, 7}));
    for (const char* document :
         {"<http://e/s> <http://e/p> <http://e/o> .", "1<http://e/s> <http://e/p> <http://e/o> .",
          "1.5 <http://e/s> <http://e/p> <http://e/o> .",
          "99999999999999999999 <http://e/s> <http://e/p> <http://e/o> .",
          "+-1 <http://e/s> <http://e/p> <http://e/o> .", "- <http://e/s> <http://e/p> <http://e/o> .", "1", "1 "})
        EXPECT_NE(error(document, options), "no error") << document;
}

TEST_F(NTriples, BlankNodeLabelsAreScoped) {
    const std::string document = "_:a <http://e/p> _:b.c .\n_:a <http://e/p> _:\xC3\xA9-1 .\n";
    BlankScope scope;
    const QuadColumns first = parse_nquads(dictionary, document, {}, scope);
    const QuadColumns again = parse_nquads(dictionary, document, {}, scope);
    const QuadColumns other = parse(document);
    EXPECT_EQ(first.subjects, again.subjects);
    EXPECT_EQ(first.objects, again.objects);
    EXPECT_EQ(first.subjects[0], first.subjects[1]);
    EXPECT_NE(first.subjects[0], other.subjects[0]);
    EXPECT_EQ(scope.nodes().size(), 3U);
    EXPECT_TRUE(scope.nodes().contains("b.c"));
}

TEST_F(NTriples, ABlankNodeMayStandBeforeTheDot) {
    const QuadColumns q =
        parse("_:a <http://e/p> _:b.\n_:a <http://e/p> _:b..\n_:a <http://e/p> _:b <http://e/g>.", {.strict = false});
    EXPECT_EQ(q.subjects.size(), 2U);
    EXPECT_EQ(q.objects[0], q.objects[1]);
    EXPECT_EQ(q.bad_count, 1U);
}

TEST_F(NTriples, TerminalsMayHaveBlanksBetweenThem) {
    const QuadColumns q = parse(
        "<http://e/s>  <http://e/p>\t\"7\" ^^\t<http://www.w3.org/2001/XMLSchema#integer>  .\n"
        "<http://e/s><http://e/p>\"x\" @en.");
    EXPECT_EQ(q.objects[0], make_integer(7));
    EXPECT_EQ(view(q.objects[1]).lang, "en");
    EXPECT_NE(error(kPrefix + std::string("\"7\"^ ^<http://e/t> .")), "no error");
}

TEST_F(NTriples, IrisAreThoseOfRfc3987) {
    for (const char* iri :
         {"http://e/", "http://e", "http://", "urn:isbn:0451450523", "a:", "http://u:p@e:80/a;b=c,d/e?q=/?#f/?",
          "http://[::1]:8080/x", "http://[v1.a:b]/", "http://e/%C3%a9", "http://é.example/ü?\uE000#ß", "mailto:a@b",
          "tag:x,2014:y", "http://e/\U00010000", "file:///a", "http://127.0.0.1", "x-y.z+1:a//b", "http://e/~(a)'*!$&"})
        EXPECT_EQ(error(kPrefix + ("<" + std::string(iri) + "> .")), "no error") << iri;
    for (const char* iri : {"http://e/%",
                            "http://e/%4",
                            "http://e/%zz",
                            "http://e/[x]",
                            "http://[x/",
                            "http://[::1]x/",
                            "http://[1.2.3.4]/",
                            "http://[v.a]/",
                            "http://e:x/",
                            "http://a@b@c/",
                            "http://e/a#b#c",
                            "http://e/\uE000",
                            "http://e/\uFFFE",
                            "http://e/#\uE000",
                            "a b:c",
                            "é:a",
                            "1:a",
                            "",
                            "//e/a",
                            "http//e"})
        EXPECT_NE(error(kPrefix + ("<" + std::string(iri) + "> .")), "no error") << iri;
}

TEST_F(NTriples, LanguageTagsAreThoseOfBcp47) {
    for (const char* tag : {"en", "EN", "de-CH", "zh-Hant-TW", "sl-rozaj-biske", "de-CH-1996", "en-a-bbb-x-a-1",
                            "x-private", "i-klingon", "sgn-be-fr", "zh-min-nan", "es-419", "abcdefgh", "en-GB-oed",
                            "hy-Latn-IT-arevela", "qaa-Qaaa-QM-x-southern", "zh-cmn-Hans-CN"})
        EXPECT_EQ(error(kPrefix + ("\"x\"@" + std::string(tag) + " .")), "no error") << tag;
    for (const char* tag : {"a", "x", "en-1", "en-a", "en-x", "de-419-DE-x-", "en-abcdefghi", "abcdefghi", "i-unknown",
                            "x-abcdefghi", "en-US-u", "de-", "en-Latn-Latn", "ar-a-aaa-b-bbb-", "1"})
        EXPECT_NE(error(kPrefix + ("\"x\"@" + std::string(tag) + " .")), "no error") << tag;
    EXPECT_NE(error(kPrefix + std::string("\"x\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .")),
              "no error");
}

TEST_F(NTriples, LimitsTheLengthOfTerms) {
    ParseOptions options;
    options.max_term_bytes = 100;
    const std::string fits(90, 'x');
    const std::string too_long(101, 'x');
    parse(kPrefix + ("\"" + fits + "\" ."), options);
    for (const std::string& object : {"\"" + too_long + "\"", "<http://e/" + too_long + ">", "_:" + too_long,
                                      "\"\\n" + too_long + "\"", "\"" + too_long})
        EXPECT_NE(error(kPrefix + object + " .", options).find("limit of 100 bytes"), std::string::npos) << object;
}

TEST_F(NTriples, KeepsTermsOfStoredData) {
    parse("<http://e/a> <http://e/b> <http://e/c> .", {.lifetime = Lifetime::Permanent});
    parse("<http://e/x> <http://e/b> <http://e/z> .");
    EXPECT_EQ(dictionary.sweep(1000), 2U);
    EXPECT_EQ(dictionary.size(), 3U);
}

/// Whatever is interned in batches or found in the cache of recent IRIs is the term that was written.
TEST_F(NTriples, LargeDocumentsComeBackAsWritten) {
    std::mt19937_64 random(17);
    std::vector<std::array<std::string, 4>> rows;
    std::string document;
    ParseOptions lenient;
    lenient.strict = false;
    std::uint64_t bad = 0;
    for (int i = 0; i < 60'000; ++i) {
        const auto iri = [&](std::uint64_t n) { return "http://example.org/" + std::to_string(random() % n); };
        std::array<std::string, 4> row = {iri(5000), iri(30), iri(50'000), iri(4)};
        const bool literal = random() % 3 == 0;
        const bool broken = random() % 50 == 0;
        document += "<" + row[0] + "> <" + row[1] + "> " + (literal ? "\"" + row[2] + "\"" : "<" + row[2] + ">") +
                    " <" + row[3] + "> " + (broken ? "!" : ".") + "\n";
        if (broken) {
            ++bad;
        } else {
            rows.push_back(row);
        }
    }
    const QuadColumns q = parse(document, lenient);
    EXPECT_EQ(q.bad_count, bad);
    ASSERT_EQ(q.subjects.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(lexical(q.subjects[i]), rows[i][0]);
        ASSERT_EQ(lexical(q.predicates[i]), rows[i][1]);
        ASSERT_EQ(lexical(q.objects[i]), rows[i][2]);
        ASSERT_EQ(lexical(q.graphs[i]), rows[i][3]);
    }
}

}  // namespace
}  // namespace penstock
