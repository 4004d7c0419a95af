#include "expr/pattern_syntax.hpp"

#include <charconv>

#include "expr/utf8.hpp"

namespace penstock::expr {
namespace {

constexpr std::size_t kMaxPattern = 1'000;
constexpr int kMaxNesting = 64;
constexpr std::uint32_t kMaxRepeat = 1'000;

struct Unsupported {};  // ends the parsing; inside of this file only

void add_range(AsciiSet& set, char first, char last) {
    for (int c = first; c <= last; ++c) set.set(static_cast<std::size_t>(c));
}

AsciiSet set_of(std::string_view text) {
    AsciiSet out;
    for (const char c : text) out.set(static_cast<std::size_t>(c));
    return out;
}

AsciiSet letters_and(std::string_view others) {
    AsciiSet out = set_of(others);
    add_range(out, 'A', 'Z');
    add_range(out, 'a', 'z');
    return out;
}

AsciiSet digits() { return set_of("0123456789"); }

/// Characters of XML Schema's \w in ASCII: neither punctuation nor a separator nor a control character.
AsciiSet word() { return letters_and("$+<=>^`|~") | digits(); }

/// The set of an escape such as \d; empty for other letters.
std::optional<AsciiSet> class_escape(char letter) {
    switch (letter) {
        case 's':
            return set_of(" \t\n\r");
        case 'd':
            return digits();
        case 'w':
            return word();
        case 'i':
            return letters_and(":_");
        case 'c':
            return letters_and(":_-.") | digits();
        case 'S':
        case 'D':
        case 'W':
        case 'I':
        case 'C':
            return ~*class_escape(ascii_lower(letter));
        default:
            return std::nullopt;
    }
}

char escaped_character(char letter) {
    if (letter == 'n') return '\n';
    if (letter == 'r') return '\r';
    if (letter == 't') return '\t';
    if (std::string_view("\\|.?*+(){}[]-^$").find(letter) == std::string_view::npos) throw Unsupported{};
    return letter;
}

AsciiSet with_both_cases(const AsciiSet& set) {
    AsciiSet out = set;
    for (std::size_t c = 'a'; c <= 'z'; ++c) {
        const bool either = set[c] || set[c - 'a' + 'A'];
        out[c] = either;
        out[c - 'a' + 'A'] = either;
    }
    return out;
}

class Parser {
public:
    Parser(std::string_view pattern, std::string_view flags)
        : text_(pattern), dot_all_(has(flags, 's')), lines_(has(flags, 'm')), ignore_case_(has(flags, 'i')) {}

    PatternTree parse() {
        tree_.root = alternatives();
        if (at_ < text_.size()) throw Unsupported{};
        return std::move(tree_);
    }

private:
    using Kind = PatternPart::Kind;

    static bool has(std::string_view flags, char flag) { return flags.find(flag) != std::string_view::npos; }
    bool ahead(char c) const { return at_ < text_.size() && text_[at_] == c; }
    bool ahead(std::string_view text) const { return text_.substr(at_).starts_with(text); }
    bool ahead_one_of(std::string_view chars) const {
        return at_ < text_.size() && chars.find(text_[at_]) != std::string_view::npos;
    }
    char take() {
        if (at_ >= text_.size()) throw Unsupported{};
        return text_[at_++];
    }
    void expect(char c) {
        if (take() != c) throw Unsupported{};
    }
    void nest() {
        if (++depth_ > kMaxNesting) throw Unsupported{};
    }

    std::uint32_t add(PatternPart part) {
        tree_.parts.push_back(std::move(part));
        return static_cast<std::uint32_t>(tree_.parts.size() - 1);
    }
    std::uint32_t add_set(const AsciiSet& set) {
        PatternPart part{.kind = Kind::Set};
        part.set = ignore_case_ ? with_both_cases(set) : set;
        return add(std::move(part));
    }

    std::uint32_t alternatives() {
        PatternPart part{.kind = Kind::Alternatives};
        part.parts.push_back(sequence());
        while (ahead('|')) {
            ++at_;
            part.parts.push_back(sequence());
        }
        return part.parts.size() == 1 ? part.parts[0] : add(std::move(part));
    }

    std::uint32_t sequence() {
        PatternPart part{.kind = Kind::Sequence};
        while (at_ < text_.size() && !ahead_one_of("|)")) part.parts.push_back(repeated(atom()));
        return add(std::move(part));
    }

    /// Reads a quantifier. Whether it is reluctant does not matter, because nothing is captured.
    std::uint32_t repeated(std::uint32_t atom) {
        PatternPart part{.kind = Kind::Repeat};
        part.parts.push_back(atom);
        if (!ahead_one_of("?*+{")) return atom;
        switch (take()) {
            case '?':
                part.most = 1;
                break;
            case '*':
                break;
            case '+':
                part.least = 1;
                break;
            default:
                read_bounds(part);
        }
        if (ahead('?')) ++at_;
        if (ahead_one_of("?*+{")) throw Unsupported{};
        return add(std::move(part));
    }

    void read_bounds(PatternPart& part) {
        part.least = part.most = number();
        if (ahead(',')) {
            ++at_;
            part.most = ahead('}') ? PatternPart::kUnbounded : number();
        }
        expect('}');
        if (part.most < part.least) throw Unsupported{};
    }

    std::uint32_t number() {
        std::uint32_t out = 0;
        const char* const begin = text_.data() + at_;
        const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), out);
        if (error != std::errc{} || out > kMaxRepeat) throw Unsupported{};
        at_ += static_cast<std::size_t>(end - begin);
        return out;
    }

    std::uint32_t atom() {
        switch (const char c = take()) {
            case '(':
                return group();
            case '[':
                return add_set(char_class());
            case '\\':
                return add_set(escape());
            case '.':
                return add_set(dot_all_ ? ~AsciiSet{} : ~set_of("\n"));
            case '^':
            case '$':
                if (lines_) throw Unsupported{};
                return add({.kind = c == '^' ? Kind::Begin : Kind::End});
            case '?':
            case '*':
            case '+':
            case '{':
            case '}':
            case ']':
                throw Unsupported{};
            default:
                return add_set(set_of({&c, 1}));
        }
    }

    std::uint32_t group() {
        nest();
        if (ahead('?')) {
            if (!ahead("?:")) throw Unsupported{};
            at_ += 2;
        }
        const std::uint32_t out = alternatives();
        expect(')');
        --depth_;
        return out;
    }

    AsciiSet escape() {
        const char letter = take();
        if (const auto found = class_escape(letter)) return *found;
        const char c = escaped_character(letter);
        return set_of({&c, 1});
    }

    /// Reads a class after '['. Its items can be followed by a class that is subtracted.
    AsciiSet char_class() {
        nest();
        const bool negative = ahead('^');
        if (negative) ++at_;
        AsciiSet items, removed;
        for (bool first = true; first || !ahead(']'); first = false) {
            if (!first && ahead("-[")) {
                at_ += 2;
                removed = char_class();
                if (!ahead(']')) throw Unsupported{};
                break;
            }
            items |= class_item();
        }
        expect(']');
        --depth_;
        if (ignore_case_ && (negative || removed.any()) &&
            (items != with_both_cases(items) || removed != with_both_cases(removed)))
            throw Unsupported{};
        return (negative ? ~items : items) & ~removed;
    }

    AsciiSet class_item() {
        char first = take();
        if (first == '[' || first == ']') throw Unsupported{};
        if (first == '\\') {
            const char letter = take();
            if (const auto found = class_escape(letter)) return *found;
            first = escaped_character(letter);
        }
        char last = first;
        if (ahead('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']' && text_[at_ + 1] != '[') {
            ++at_;
            last = take();
            if (last == '\\') last = escaped_character(take());
        }
        if (last < first) throw Unsupported{};
        AsciiSet out;
        add_range(out, first, last);
        return out;
    }

    std::string_view text_;
    bool dot_all_, lines_, ignore_case_;
    std::size_t at_ = 0;
    int depth_ = 0;
    PatternTree tree_;
};

}  // namespace

std::optional<PatternTree> parse_pattern(std::string_view pattern, std::string_view flags) {
    if (pattern.size() > kMaxPattern || !is_ascii(pattern) || flags.find_first_not_of("sim") != std::string_view::npos)
        return std::nullopt;
    try {
        return Parser(pattern, flags).parse();
    } catch (const Unsupported&) {
        return std::nullopt;
    }
}

}  // namespace penstock::expr
