// Language tags: well-formedness (BCP 47 = RFC 5646 §2.1), which RDF 1.1 Concepts §3.3 demands of literals, and case.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

bool is_language_tag(std::string_view tag);

/// Tags are equal without regard to case (RDF 1.1 Concepts §3.3); terms hold them in lower case.
bool has_upper_case(std::string_view tag);
std::string lower_case(std::string_view tag);

}  // namespace penstock
