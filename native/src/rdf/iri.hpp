// Well-formedness of IRIs (RFC 3987 §2.2). All input is checked, so every term can be written in every serialisation.
#pragma once

#include <string_view>

namespace penstock {

/// The reason why the text is not an absolute IRI (with or without a fragment); nullptr if it is one. The text must be
/// valid UTF-8.
const char* iri_fault(std::string_view iri);

/// Whether a character beyond ASCII is `ucschar` (RFC 3987 §2.2), which may be anywhere in an IRI behind the scheme.
bool is_iri_character(char32_t c);

}  // namespace penstock
