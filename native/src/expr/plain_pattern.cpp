#include "expr/plain_pattern.hpp"

#include <algorithm>

#include "expr/utf8.hpp"

namespace penstock::expr {
namespace {

constexpr std::string_view kSpecial = "\\.?*+{}()[]|^$";

/// The text of a pattern in which all special characters are escaped; empty for other patterns.
std::optional<std::string> unescape(std::string_view pattern) {
    const auto special = [](char c) { return kSpecial.find(c) != std::string_view::npos; };
    std::string out;
    bool escaped = false;
    for (const char c : pattern) {
        if (escaped && c != '-' && !special(c)) return std::nullopt;  // \n, \d …
        if (!escaped && c != '\\' && special(c)) return std::nullopt;
        escaped = !escaped && c == '\\';
        if (!escaped) out += c;
    }
    return escaped ? std::nullopt : std::optional(std::move(out));
}

/// Whether the text has a letter whose case folding includes a letter outside ASCII: k (KELVIN SIGN), s (LONG S).
bool folds_outside_ascii(std::string_view text) { return text.find_first_of("kKsS") != std::string_view::npos; }

}  // namespace

bool valid_flags(std::string_view flags) { return flags.find_first_not_of("smixq") == std::string_view::npos; }

std::optional<PlainPattern> plain_pattern(std::string_view pattern, std::string_view flags) {
    const auto has = [flags](char flag) { return flags.find(flag) != std::string_view::npos; };
    PlainPattern out;
    out.ignore_case = has('i');
    if (has('q')) {
        out.text = pattern;
    } else {
        if (has('x')) return std::nullopt;
        out.at_start = pattern.starts_with('^');
        if (out.at_start) pattern.remove_prefix(1);
        out.at_end = pattern.ends_with('$') && !pattern.ends_with("\\$");
        if (out.at_end) pattern.remove_suffix(1);
        if (has('m') && (out.at_start || out.at_end)) return std::nullopt;
        auto text = unescape(pattern);
        if (!text) return std::nullopt;
        out.text = std::move(*text);
    }
    if (out.ignore_case) {
        if (!is_ascii(out.text) || folds_outside_ascii(out.text)) return std::nullopt;
        std::transform(out.text.begin(), out.text.end(), out.text.begin(), ascii_lower);
    }
    return out;
}

bool PlainPattern::matches(std::string_view subject) const {
    if (at_start && at_end && subject.size() != text.size()) return false;
    if (at_end) {
        if (subject.size() < text.size()) return false;
        return find(subject.substr(subject.size() - text.size()), 0) == 0;
    }
    if (at_start) return subject.size() >= text.size() && find(subject.substr(0, text.size()), 0) == 0;
    return find(subject, 0) != std::string_view::npos;
}

std::size_t PlainPattern::find(std::string_view subject, std::size_t from) const {
    if (!ignore_case) return subject.find(text, from);
    const auto found =
        std::search(subject.begin() + static_cast<std::ptrdiff_t>(std::min(from, subject.size())), subject.end(),
                    text.begin(), text.end(), [](char a, char b) { return ascii_lower(a) == b; });
    if (found == subject.end() && !text.empty()) return std::string_view::npos;
    return static_cast<std::size_t>(found - subject.begin());
}

}  // namespace penstock::expr
