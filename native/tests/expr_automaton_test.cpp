// Automata of regular expressions against std::regex, and their limits.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // in <regex>, under sanitizers
#endif

#include "expr/ascii_automaton.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>
#include <regex>
#include <string>

namespace penstock::expr {
namespace {

// Without backtracking where the library offers it: random patterns nest quantifiers.
#ifdef __GLIBCXX__
constexpr auto kSyntax = std::regex_constants::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr auto kSyntax = std::regex_constants::ECMAScript;
#endif

using std::chrono::milliseconds, std::chrono::steady_clock;

std::optional<bool> matches(const std::string& text, const std::string& pattern, const std::string& flags = "") {
    const auto automaton = AsciiAutomaton::compile(pattern, flags);
    if (!automaton) return std::nullopt;
    return automaton->matches(text);
}

/// Random patterns of the syntax that XPath and ECMAScript share.
class Patterns {
public:
    explicit Patterns(unsigned seed) : random_(seed) {}

    std::string text() {
        std::string out(below(7), ' ');
        for (char& c : out) c = "abc-"[below(4)];
        return out;
    }
    std::string alternatives(int depth) {
        std::string out = sequence(depth);
        for (std::size_t more = below(3) == 0 ? 1 : 0; more > 0; --more) out += "|" + sequence(depth);
        return out;
    }

private:
    std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
    std::string sequence(int depth) {
        std::string out;
        for (std::size_t i = 1 + below(3); i > 0; --i) out += repeated(depth);
        return out;
    }
    std::string repeated(int depth) {
        static const char* const kQuantifiers[] = {"",    "",      "",      "?",    "*",  "+",
                                                   "{2}", "{1,3}", "{0,1}", "{2,}", "*?", "+?"};
        if (below(10) == 0) return below(2) == 0 ? "^" : "$";
        return atom(depth) + kQuantifiers[below(std::size(kQuantifiers))];
    }
    std::string atom(int depth) {
        static const char* const kSets[] = {".", "[ab]", "[^a]", "[a-b]", "[^-a]", "\\-", "\\d"};
        if (depth > 0 && below(3) == 0) return (below(2) == 0 ? "(" : "(?:") + alternatives(depth - 1) + ")";
        return below(3) == 0 ? kSets[below(std::size(kSets))] : std::string(1, "abc"[below(3)]);
    }

    std::mt19937 random_;
};

TEST(Automaton, AgreesWithStdRegex) {
    std::size_t compiled = 0;
    for (unsigned seed = 0; seed < 3'000; ++seed) {
        Patterns patterns(seed);
        const std::string pattern = patterns.alternatives(2);
        const auto automaton = AsciiAutomaton::compile(pattern, "");
        if (!automaton) continue;
        ++compiled;
        const std::regex expected(pattern, kSyntax);
        for (int i = 0; i < 8; ++i) {
            const std::string text = patterns.text();
            ASSERT_EQ(automaton->matches(text), std::regex_search(text, expected)) << pattern << " in " << text;
        }
    }
    EXPECT_GT(compiled, 2'900u);
}

TEST(Automaton, Flags) {
    EXPECT_EQ(matches("xABx", "ab"), false);
    EXPECT_EQ(matches("xABx", "ab", "i"), true);
    EXPECT_EQ(matches("a\nb", "a.b"), false);
    EXPECT_EQ(matches("a\nb", "a.b", "s"), true);
    EXPECT_EQ(matches("a\nb", "^b", "m"), std::nullopt);
    EXPECT_EQ(matches("a", "a", "x"), std::nullopt);
}

TEST(Automaton, SubtractedClassesAndEscapes) {
    EXPECT_EQ(matches("e", "[a-z-[aeiou]]"), false);
    EXPECT_EQ(matches("f", "[a-z-[aeiou]]"), true);
    EXPECT_EQ(matches("_", "^\\i$"), true);
    EXPECT_EQ(matches("1", "^\\i$"), false);
    EXPECT_EQ(matches("1", "^\\c$"), true);
}

TEST(Automaton, UnsupportedOrInvalidPatternsAreRefused) {
    for (const char* pattern : {"(a)\\1", "\\p{Lu}", "a**", "a{2,1}", "(a", "a)", "[a", "[]", "[b-a]", "\\", "*",
                                "(?=a)", "a{1001}", "a{99999999999}", "\xC3\xA9"})
        EXPECT_EQ(matches("a", pattern), std::nullopt) << pattern;
}

std::string nested(const std::string& inner, const std::string& quantifier, int levels) {
    std::string out = inner;
    for (int i = 0; i < levels; ++i) out = "(" + out + ")" + quantifier;
    return out;
}

TEST(Automaton, LargeAutomataAreRefusedSoon) {
    const auto begin = steady_clock::now();
    EXPECT_EQ(matches("a", nested("", "{1000}", 8)), std::nullopt);
    EXPECT_EQ(matches("a", nested("^", "{1000}", 8)), std::nullopt);
    EXPECT_EQ(matches("a", nested("a", "{1000}", 8)), std::nullopt);
    EXPECT_EQ(matches("a", nested("a", "{0,1000}", 8)), std::nullopt);
    EXPECT_EQ(matches("a", nested("a", "*", 65)), std::nullopt);
    EXPECT_EQ(matches("a", "(a|b)*a(a|b){12}"), std::nullopt);  // 2^12 states
    std::string wide;
    for (char c = '!'; c <= '~'; ++c)
        if (std::isalnum(c)) wide += std::string(wide.empty() ? "" : "|") + c + ".*" + c;
    EXPECT_EQ(matches("a", wide), std::nullopt);
    EXPECT_LT(steady_clock::now() - begin, milliseconds(5'000));  // without limits: years
}

}  // namespace
}  // namespace penstock::expr
