// Normalized texts of queries and updates (docs/adr/0088-prepared-texts.md). A pattern is a text without its constants.
// Texts that differ only in constants therefore have the same pattern.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::query {

/// `pattern`: the text, with a zero byte and the kind in place of each constant. `constants`: views of the text, in
/// order. The constant of a prefixed name is its local part.
struct NormalizedText {
    std::string pattern;
    std::vector<std::string_view> constants;
};

/// Maximum number of constants of a normalized text.
inline constexpr std::size_t kMaxConstants = 128;

/// Takes the constants out of a text in UTF-8: IRIs (kind i), local parts of prefixed names (l), strings (s), unsigned
/// integers (n) and unsigned decimals (d). No result if the text has no constants or too many constants, or if a
/// constant is possibly not plain. A constant is plain if the grammar's lexer always reads it as one token of its kind,
/// independently of the neighbouring characters. Texts with comments, backslashes, long strings or relative IRIs
/// therefore have no result.
std::optional<NormalizedText> normalize(std::string_view text);

}  // namespace penstock::query
