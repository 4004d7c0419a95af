// Spellings of xsd:dateTime and xsd:date as ids and back; the layouts are those of inline_literal.hpp.
#pragma once

#include <string>
#include <string_view>

#include "rdf/term.hpp"

namespace penstock::inline_detail {

/// The inline id; kUnbound if the spelling does not fit.
TermId encode_date(std::string_view lexical);
TermId encode_datetime(std::string_view lexical);
/// Appends the exact spelling of the id.
void append_date(std::string& out, TermId id);
void append_datetime(std::string& out, TermId id);

}  // namespace penstock::inline_detail
