// Finds the columns that an expression decodes to terms. A partial dictionary must fetch these terms in advance.
#pragma once

#include <vector>

#include "exec/table.hpp"
#include "spec.hpp"

namespace penstock::expr {

/// The slots whose terms an expression possibly decodes. Excludes variables that are only tested with BOUND, or only
/// compared with an IRI for equality, because ids suffice for both.
std::vector<Slot> looked_at(const Spec& expression);

}  // namespace penstock::expr
