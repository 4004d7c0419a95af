// The texts of terms that a mapping makes of values.
#pragma once

#include <string>
#include <string_view>

namespace penstock::mapping {

/// Appends a value of a template of an IRI: characters that are not iunreserved (RFC 3987) are percent-encoded.
/// `ascii`: so are all characters beyond ASCII.
void append_encoded(std::string& out, std::string_view text, bool ascii);

/// Appends the label of the blank node for a value. Different values have different labels.
void append_label(std::string& out, std::string_view text);

/// Appends the canonical form of an xsd:double, given as a number of JSON. Returns whether there is one: not for a
/// number that is out of range.
bool append_canonical_double(std::string& out, std::string_view number);

}  // namespace penstock::mapping
