// Reference resolution of RFC 3986 §5, on IRIs.
#pragma once

#include <string>
#include <string_view>

namespace penstock::expr {

/// Whether the text contains only characters that are allowed in an IRI without escapes. Spaces, control characters and
/// <>"{}|\^` are not allowed.
bool iri_characters(std::string_view text);
/// Whether the IRI has a scheme.
bool is_absolute(std::string_view iri);
/// Resolves `reference` against an absolute `base` and removes dot segments.
std::string resolve(std::string_view base, std::string_view reference);

}  // namespace penstock::expr
