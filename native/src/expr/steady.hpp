// Expressions whose value depends only on the row.
#pragma once

#include "spec.hpp"

namespace penstock::expr {

/// Whether the expression gives the same term for the same row in every evaluation. False for an expression with
/// EXISTS.
bool is_steady(const Spec& expression);

}  // namespace penstock::expr
