// Memory of the executor's own structures, charged to the budget of the run that fills them.
#pragma once

#include <cstddef>

#include "exec/budget.hpp"

namespace penstock::exec {

/// Holds an amount against a budget until it is changed or released.
class Charge {
public:
    Charge() = default;
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    /// Does not release the charge, because after an abort, the budget is possibly destroyed before the operators. The
    /// end of the budget ends all charges.
    ~Charge() = default;

    /// Changes the amount to `bytes`. Throws LimitError, before the allocation, if the budget does not allow it.
    void set(Budget& budget, std::size_t bytes) {
        auto target = static_cast<std::ptrdiff_t>(bytes);
        if (target == held_) return;
        std::ptrdiff_t change = target - held_;
        held_ = target;
        budget.charge(change);
    }
    void release(Budget& budget) { set(budget, 0); }

private:
    std::ptrdiff_t held_ = 0;
};

/// The same for one scope. Releases also when an exception leaves the scope. The budget must outlive the scope.
class ScopedCharge {
public:
    explicit ScopedCharge(Budget& budget) : budget_(budget) {}
    ScopedCharge(const ScopedCharge&) = delete;
    ScopedCharge& operator=(const ScopedCharge&) = delete;
    ~ScopedCharge() { charge_.release(budget_); }
    void set(std::size_t bytes) { charge_.set(budget_, bytes); }

private:
    Budget& budget_;
    Charge charge_;
};

}  // namespace penstock::exec
