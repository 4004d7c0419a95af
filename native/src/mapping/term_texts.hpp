// The texts of terms that a mapping makes of values.
#pragma once

#include <string>
#include <string_view>

namespace penstock::mapping {

/// Appends a value in the template of an IRI. Characters that are not iunreserved (RFC 3987) are percent-encoded. With
/// `ascii`, all characters beyond ASCII are percent-encoded, too.
void append_encoded(std::string& out, std::string_view text, bool ascii);

/// Appends the label of the blank node for a value. Different values have different labels.
void append_label(std::string& out, std::string_view text);

/// Appends the canonical form of an xsd:double, given as a JSON number. Returns false for a number that is out of
/// range, because it has no such form.
bool append_canonical_double(std::string& out, std::string_view number);

}  // namespace penstock::mapping
