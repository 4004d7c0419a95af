// The syntax of XPath's regular expressions (F&O §5.6.1), as far as texts in ASCII are concerned.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace penstock::expr {

using AsciiSet = std::bitset<128>;

/// A part of a regular expression. Parts refer to others by their position in `PatternTree::parts`.
struct PatternPart {
    enum class Kind : std::uint8_t { Set, Begin, End, Sequence, Alternatives, Repeat };
    static constexpr std::uint32_t kUnbounded = 0xFFFFFFFF;
    Kind kind = Kind::Sequence;
    AsciiSet set;                                // Set: one character of it
    std::vector<std::uint32_t> parts;            // Sequence, Alternatives, Repeat (one part)
    std::uint32_t least = 0, most = kUnbounded;  // Repeat
};

struct PatternTree {
    std::vector<PatternPart> parts;
    std::uint32_t root = 0;
};

/// Parses a pattern with flags of "sim". Empty if the pattern is invalid, has characters outside of ASCII, or needs a
/// feature that an automaton over ASCII does not offer. These features are back-references, properties such as \p{Lu},
/// anchors with the flag m, and negated classes that ignore case.
std::optional<PatternTree> parse_pattern(std::string_view pattern, std::string_view flags);

}  // namespace penstock::expr
