// The memory of an aggregate, as part of the budget of an evaluation.
#pragma once

#include <cstddef>

#include "expr/expression.hpp"

namespace penstock::expr {

/// Charges an aggregate's memory to the budget of the evaluation, and releases the charge at the end.
class Holding {
public:
    void set(std::size_t bytes, Budget& budget) {
        const auto change = static_cast<std::ptrdiff_t>(bytes) - charged_;
        charged_ = static_cast<std::ptrdiff_t>(bytes);
        budget.charge(change);
    }
    void forget() { charged_ = 0; }

private:
    std::ptrdiff_t charged_ = 0;
};

}  // namespace penstock::expr
