// Which columns an expression decodes to terms: those that a partial dictionary must fetch in advance.
#pragma once

#include <vector>

#include "exec/table.hpp"
#include "spec.hpp"

namespace penstock::expr {

/// Slots whose terms an expression may decode. Excludes variables that are only tested for being bound, or compared
/// with an IRI for equality, because ids decide both.
std::vector<Slot> looked_at(const Spec& expression);

}  // namespace penstock::expr
