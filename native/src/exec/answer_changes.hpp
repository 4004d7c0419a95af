// The change of an answer since an earlier run, for ISTREAM, DSTREAM and the option `changes` (ADR 81, 102).
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.hpp"
#include "exec/key_table.hpp"
#include "exec/maintained_input.hpp"
#include "exec/output_change.hpp"

namespace penstock::exec {

/// Uses the change of the root's output if the root gives this change (GROUP BY, DISTINCT). Otherwise, uses the change
/// of the plan's rows. The only state is the versions of the sources. A row that was both added and removed in a run is
/// not a change.
class AnswerChanges final : private Sink {
public:
    /// `root`: the plan's root. It must have just been compiled to `op`, as the first node of the plan.
    AnswerChanges(const Spec& root, Operator& op, Compiler& compiler);

    /// Runs the plan. If the caller holds the answer of the last run and the change since then is known, pushes the
    /// added rows, and then the removed rows. Otherwise pushes the answer.
    void run(Run& run, AnswerChange& change, Sink& out);
    /// An id that no other answer has.
    static std::uint64_t next_id();
    /// The next run pushes an answer.
    void forget() {
        id_ = 0;
        output_.requested = false;
    }

private:
    bool consume(Table& rows) override;
    void run_giver(Run& run, bool held, AnswerChange& change, Sink& out);
    void begin(Run& run, Sink& out);
    void push_change(Run& run, AnswerChange& change, Sink& out);
    std::size_t push_net(Run& run, Sink& out, int sign);

    Operator& root_;
    MaintainedInput input_;
    OutputChange output_;
    bool given_;  // whether the root gives the change of its output
    Sink* out_ = nullptr;
    Run* run_ = nullptr;
    Table buffer_;
    KeyTable changed_;
    std::vector<std::int64_t> net_;  // by distinct row
    std::vector<const TermId*> keys_;
    std::vector<std::uint32_t> ids_, taken_;
    int sign_ = 1;
    std::uint64_t id_ = 0;  // of the last run's answer; 0: its change cannot be found
};

}  // namespace penstock::exec
