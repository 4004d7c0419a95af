#include "expr/iri_reference.hpp"

#include <algorithm>
#include <optional>

namespace penstock::expr {
namespace {

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_scheme(char c) { return is_alpha(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; }

using Part = std::optional<std::string_view>;  // an absent and an empty part differ

struct Components {
    Part scheme, authority, query, fragment;
    std::string_view path;
};

std::size_t scheme_length(std::string_view text) {
    if (text.empty() || !is_alpha(text[0])) return std::string_view::npos;
    const auto end = std::find_if_not(text.begin(), text.end(), is_scheme);
    return end != text.end() && *end == ':' ? static_cast<std::size_t>(end - text.begin()) : std::string_view::npos;
}

/// Removes the last part of `text`, from `mark` on, and returns what follows `mark`.
Part cut(std::string_view& text, char mark) {
    const std::size_t at = text.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view out = text.substr(at + 1);
    text = text.substr(0, at);
    return out;
}

Components parse(std::string_view text) {
    Components out;
    if (const std::size_t length = scheme_length(text); length != std::string_view::npos) {
        out.scheme = text.substr(0, length);
        text.remove_prefix(length + 1);
    }
    out.fragment = cut(text, '#');
    out.query = cut(text, '?');
    if (text.starts_with("//")) {
        text.remove_prefix(2);
        const std::size_t end = std::min(text.find('/'), text.size());
        out.authority = text.substr(0, end);
        text.remove_prefix(end);
    }
    out.path = text;
    return out;
}

std::string without_dot_segments(std::string_view path) {
    std::string out;
    const auto drop_last = [&out] { out.erase(std::min(out.rfind('/'), out.size())); };
    while (!path.empty()) {
        if (path.starts_with("../"))
            path.remove_prefix(3);
        else if (path.starts_with("./") || path.starts_with("/./"))
            path.remove_prefix(2);
        else if (path == "/.")
            path = "/";
        else if (path.starts_with("/../"))
            path.remove_prefix(3), drop_last();
        else if (path == "/..")
            path = "/", drop_last();
        else if (path == "." || path == "..")
            path = {};
        else {
            const std::size_t end = std::min(path.find('/', 1), path.size());
            out += path.substr(0, end);
            path.remove_prefix(end);
        }
    }
    return out;
}

/// The base's path up to its last slash, followed by the reference's path (§5.2.3).
std::string merge(const Components& base, std::string_view path) {
    if (base.authority && base.path.empty()) return std::string("/").append(path);
    const std::size_t slash = base.path.rfind('/');
    const std::string_view folder = slash == std::string_view::npos ? "" : base.path.substr(0, slash + 1);
    return std::string(folder).append(path);
}

}  // namespace

bool iri_characters(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) <= 0x20 ||
               std::string_view("<>\"{}|\\^`").find(c) != std::string_view::npos;
    });
}

bool is_absolute(std::string_view iri) { return scheme_length(iri) != std::string_view::npos; }

std::string resolve(std::string_view base_text, std::string_view reference) {
    const Components given = parse(reference), base = parse(base_text);
    Part scheme = base.scheme, authority = base.authority, query = given.query;
    std::string path;
    if (given.scheme || given.authority) {
        if (given.scheme) scheme = given.scheme;
        authority = given.authority;
        path = without_dot_segments(given.path);
    } else if (given.path.empty()) {
        path = base.path;
        if (!query) query = base.query;
    } else {
        path = without_dot_segments(given.path.starts_with('/') ? std::string(given.path) : merge(base, given.path));
    }
    std::string out;
    if (scheme) out.append(*scheme).append(":");
    if (authority) out.append("//").append(*authority);
    out += path;
    if (query) out.append("?").append(*query);
    if (given.fragment) out.append("#").append(*given.fragment);
    return out;
}

}  // namespace penstock::expr
