// + and - on dates, times and durations, as in XPath (F&O §10.4, §10.6, §10.8). SPARQL 1.1 leaves them to
// implementations (§17.3.1). Examples: NOW() - "PT10S"^^xsd:dayTimeDuration, ?end - ?start.
#pragma once

#include "expr/arithmetic.hpp"

namespace penstock::expr {

/// Computes moment ± duration, moment - moment of the same type (both with or both without timezone), and duration ±
/// duration of the same type. Error for other operands, and for years of more than nine digits.
Value compute_time(Arithmetic operation, const Value& a, const Value& b);

}  // namespace penstock::expr
