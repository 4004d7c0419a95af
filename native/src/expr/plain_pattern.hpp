// Regular expressions that consist of text and anchors only, evaluated without a regex engine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::expr {

struct PlainPattern {
    std::string text;  // lower case if ignore_case
    bool at_start = false, at_end = false, ignore_case = false;

    bool matches(std::string_view subject) const;
    /// Offset of the first match at or after `from`; npos if there is none.
    std::size_t find(std::string_view subject, std::size_t from) const;
};

/// Converts a pattern in XPath's syntax (F&O §5.6.1) with flags of "smixq". Empty if it needs more than text and
/// anchors, or if ignoring case would need more than ASCII.
std::optional<PlainPattern> plain_pattern(std::string_view pattern, std::string_view flags);

bool valid_flags(std::string_view flags);

}  // namespace penstock::expr
