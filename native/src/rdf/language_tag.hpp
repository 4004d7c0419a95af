// Well-formedness of language tags (BCP 47 = RFC 5646 §2.1), which RDF 1.1 Concepts §3.3 demands of literals.
#pragma once

#include <string_view>

namespace penstock {

bool is_language_tag(std::string_view tag);

}  // namespace penstock
