// Which columns an expression looks at as terms, rather than as ids: what a partial dictionary must have before.
#pragma once

#include <vector>

#include "exec/table.hpp"
#include "spec.hpp"

namespace penstock::expr {

/// Slots whose terms an expression may decode. Left out are variables that are only asked whether they are bound, or
/// compared with an IRI for equality, which ids decide.
std::vector<Slot> looked_at(const Spec& expression);

}  // namespace penstock::expr
