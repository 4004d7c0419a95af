// Operators = != < > <= >= (SPARQL 1.1 §17.3, RDFterm-equal §17.4.1.7) and the order of ORDER BY (§15.1).
#pragma once

#include <string>

#include "expr/value.hpp"
#include "rdf/dictionary.hpp"

namespace penstock::expr {

enum class Comparison : std::uint8_t { Equal, NotEqual, Less, Greater, LessEqual, GreaterEqual };

/// Compares numbers after promotion, strings by code point, dates by XSD's partial order (undecided = error). Equality
/// is false between literals of known datatypes with disjoint values. If the terms differ, equality is an error in two
/// cases: a datatype is unknown, or a lexical form is malformed (W3C data-sparql10/open-world). Language tags are
/// compared without regard to case.
Truth compare(Comparison operation, const Value& a, const Value& b);

/// Whether both are the same term, regardless of value.
bool same_text(const Value& a, const Value& b);

/// Whether two language tags are equal, without regard to case (BCP 47 §2.1.1).
bool equal_tags(std::string_view a, std::string_view b);

/// Total order of values: error < blank < IRI < numbers < strings < booleans < dateTimes < dates < times < durations <
/// other literals. Where `<` is defined, the order agrees with `<`. 0 for values that differ only in spelling or
/// datatype.
int value_order(const Value& a, const Value& b);

/// order_compare for values whose ids are known. Compares by value_order, then by datatype and lexical form. 0 only for
/// the same term.
int term_order(const Value& a, const Value& b, const LocalTerms& terms);

/// By datatype, then by lexical form.
int spelling_order(const TermView& a, const TermView& b);

/// The value of a term, with the id of the term. `term`: the text of the term. It is needed only for IRIs, and for
/// literals that are neither inline numbers nor inline times. The texts of the result point into `term`.
Value value_of(TermId id, const TermView& term);
Value value_of(TermId id, const LocalTerms& terms, std::string& scratch);

}  // namespace penstock::expr
