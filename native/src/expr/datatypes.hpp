// The datatypes whose literals expressions evaluate by value.
#pragma once

#include <string_view>

#include "expr/value.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock::expr {

struct Datatype {
    ValueType type = ValueType::Opaque;  // of its well-formed literals; Opaque if the datatype is unknown
    IntegerType integer = IntegerType::Integer;
    bool timezone_required = false;  // xsd:dateTimeStamp
};

Datatype find_datatype(std::string_view iri);
/// The same, given the part of an XSD datatype IRI after '#'.
Datatype find_xsd_datatype(std::string_view local_name);

bool in_range(Int128 value, IntegerType type);

/// The value of a lexical form. If the lexical form has no value, the type of the result is Opaque, Malformed or Huge,
/// and text and tag are not set.
Value parse_lexical(std::string_view lexical, const Datatype& datatype);

}  // namespace penstock::expr
