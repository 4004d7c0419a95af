// Well-formedness of IRIs (RFC 3987 §2.2), for all that enters: a term that is in must come out in every serialisation.
#pragma once

#include <string_view>

namespace penstock {

/// What keeps the text from being an absolute IRI (with or without a fragment), or nullptr where it is one. The text
/// must be valid UTF-8.
const char* iri_fault(std::string_view iri);

}  // namespace penstock
