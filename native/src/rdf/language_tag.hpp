// Language tags: well-formedness (BCP 47 = RFC 5646 §2.1), as RDF 1.1 Concepts §3.3 requires of literals, and case.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

bool is_language_tag(std::string_view tag);

/// Tags are equal regardless of case (RDF 1.1 Concepts §3.3); terms store them in lower case.
bool has_upper_case(std::string_view tag);
std::string lower_case(std::string_view tag);

}  // namespace penstock
