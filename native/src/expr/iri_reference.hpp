// Reference resolution of RFC 3986 §5, on IRIs.
#pragma once

#include <string>
#include <string_view>

namespace penstock::expr {

/// No character that an IRI must not contain as such (space, controls, <>"{}|\^`).
bool iri_characters(std::string_view text);
/// Has a scheme.
bool is_absolute(std::string_view iri);
/// `reference` against an absolute `base`, dot segments removed.
std::string resolve(std::string_view base, std::string_view reference);

}  // namespace penstock::expr
