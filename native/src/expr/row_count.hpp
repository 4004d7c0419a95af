// COUNT(*) and COUNT(DISTINCT *).
#pragma once

#include <memory>

#include "expr/expression.hpp"

namespace penstock::expr {

std::unique_ptr<Aggregate> make_row_count(bool distinct);

}  // namespace penstock::expr
