// The interface by which an operator that keeps its state passes the change of its output to the operator that reads
// this output (ADR 89).
#pragma once

#include <cstddef>
#include <vector>

#include "exec/operator.hpp"

namespace penstock::exec {

/// The reader sets `requested` before each run. The giver sets the other members.
struct OutputChange {
    std::vector<Slot> computed;  // slots of the output whose values are computed; set once
    bool requested = false;      // the reader has the whole output of the last run
    // Before the first row of a run, or at its end if it has none:
    bool given = false;                  // the rows are the change since the last run
    bool tracks = false;                 // the next run may give the change
    Outcome outcome = Outcome::NoState;  // how the giver was evaluated
    int sign = 1;                        // of the rows that are being pushed: they are added (1) or removed (-1)
    // At the end of a run:
    bool can_follow = false;  // the giver has kept its state
};

/// An operator that can give the change of its output instead of the output.
class ChangeGiver {
public:
    /// Requests that the operator reports to `change` from now on. Returns false if the operator cannot give changes.
    virtual bool give_change(OutputChange& change) = 0;

protected:
    ~ChangeGiver() = default;
};

inline bool give_change_of(Operator& from, OutputChange& change) {
    auto* giver = dynamic_cast<ChangeGiver*>(&from);
    return giver != nullptr && giver->give_change(change);
}

}  // namespace penstock::exec
