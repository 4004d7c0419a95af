#include "query/normalized_text.hpp"

#include <array>
#include <cstdint>

namespace penstock::query {
namespace {

enum : std::uint8_t { kSpace = 1, kLetter = 2, kDigit = 4, kNotInIri = 8, kEnds = 16, kJoins = 32 };

/// The classes of each byte. kEnds: a constant may stand before it. kJoins: a number may not stand behind it.
constexpr std::array<std::uint8_t, 256> classes() {
    std::array<std::uint8_t, 256> found{};
    for (unsigned c = 0; c <= 0x20; ++c) found[c] |= kNotInIri;
    for (const char c : std::string_view("<>\"{}|^`\\")) found[static_cast<std::uint8_t>(c)] |= kNotInIri;
    for (const char c : std::string_view(" \t\n\r\f\v")) found[static_cast<std::uint8_t>(c)] |= kSpace | kEnds;
    for (const char c : std::string_view(";,)}]")) found[static_cast<std::uint8_t>(c)] |= kEnds;
    for (unsigned c = 'a'; c <= 'z'; ++c) found[c] |= kLetter | kJoins;
    for (unsigned c = 'A'; c <= 'Z'; ++c) found[c] |= kLetter | kJoins;
    for (unsigned c = '0'; c <= '9'; ++c) found[c] |= kDigit | kJoins;
    for (const char c : std::string_view("_?$:.+@^%-")) found[static_cast<std::uint8_t>(c)] |= kJoins;
    return found;
}

constexpr auto kClasses = classes();

bool is(char c, unsigned what) { return (kClasses[static_cast<std::uint8_t>(c)] & what) != 0; }

class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {}

    std::optional<NormalizedText> run() {
        NormalizedText found;
        found.pattern.reserve(text_.size());
        std::size_t copied = 0;
        for (std::size_t at = 0; at < text_.size();) {
            char kind = 0;
            const std::size_t end = constant(at, kind);
            if (end == at) {
                if (uncertain(at)) return std::nullopt;
                ++at;
                continue;
            }
            if (found.constants.size() == kMaxConstants) return std::nullopt;
            found.pattern.append(text_, copied, at - copied).append({'\0', kind});
            found.constants.push_back(text_.substr(at, end - at));
            copied = at = end;
        }
        if (found.constants.empty()) return std::nullopt;
        found.pattern.append(text_, copied);
        return found;
    }

private:
    /// The end of the plain constant that begins at `at`, or `at` if there is none.
    std::size_t constant(std::size_t at, char& kind) const {
        const char first = text_[at];
        if (first == '<') {
            kind = 'i';
            return iri(at);
        }
        if (first == '"' || first == '\'') {
            kind = 's';
            return string(at);
        }
        if (at > 0 && text_[at - 1] == ':') {
            kind = 'l';
            return is(first, kLetter | kDigit) || first == '_' ? local(at) : at;
        }
        if (is(first, kDigit) && (at == 0 || !is(text_[at - 1], kJoins))) return number(at, kind);
        return at;
    }

    std::size_t iri(std::size_t at) const {
        std::size_t end = at + 1;
        if (end == text_.size() || !is(text_[end], kLetter)) return at;
        while (end < text_.size() &&
               (is(text_[end], kLetter | kDigit) || text_[end] == '+' || text_[end] == '.' || text_[end] == '-'))
            ++end;
        if (end == text_.size() || text_[end] != ':') return at;
        while (end < text_.size() && !is(text_[end], kNotInIri)) ++end;
        return end < text_.size() && text_[end] == '>' ? end + 1 : at;
    }

    std::size_t string(std::size_t at) const {
        std::size_t end = at + 1;
        while (end < text_.size() && text_[end] != text_[at] && text_[end] != '\n' && text_[end] != '\r') ++end;
        return end < text_.size() && text_[end] == text_[at] ? end + 1 : at;
    }

    std::size_t local(std::size_t at) const {
        std::size_t end = at + 1;
        while (end < text_.size() && (is(text_[end], kLetter | kDigit) || text_[end] == '_' || text_[end] == '-'))
            ++end;
        return ends(end) ? end : at;
    }

    std::size_t number(std::size_t at, char& kind) const {
        kind = 'n';
        std::size_t end = digits(at);
        if (end < text_.size() && text_[end] == '.' && digits(end + 1) > end + 1) {
            kind = 'd';
            end = digits(end + 1);
        }
        return ends(end) ? end : at;
    }

    std::size_t digits(std::size_t at) const {
        while (at < text_.size() && is(text_[at], kDigit)) ++at;
        return at;
    }

    /// Whether a name or a number that ends at `at` is one token.
    bool ends(std::size_t at) const {
        if (at == text_.size() || is(text_[at], kEnds)) return true;
        return text_[at] == '.' && at + 1 < text_.size() && (is(text_[at + 1], kSpace) || text_[at + 1] == '}');
    }

    /// Whether a comment, or what may be an IRI that is not plain, begins outside of constants.
    bool uncertain(std::size_t at) const {
        if (text_[at] == '#') return true;
        if (text_[at] != '<') return false;
        const std::size_t next = at + 1 < text_.size() && text_[at + 1] == '=' ? at + 2 : at + 1;
        return next >= text_.size() || !is(text_[next], kSpace);
    }

    std::string_view text_;
};

bool excluded(std::string_view text) {
    constexpr auto kNone = std::string_view::npos;
    return text.find('\\') != kNone || text.find('\0') != kNone || text.find("\"\"\"") != kNone ||
           text.find("'''") != kNone;
}

}  // namespace

std::optional<NormalizedText> normalize(std::string_view text) {
    if (excluded(text)) return std::nullopt;
    return Scanner(text).run();
}

}  // namespace penstock::query
