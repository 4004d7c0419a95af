// The change of an answer since an earlier run, for ISTREAM, DSTREAM and the option `changes` (ADR 81, 102).
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.hpp"
#include "exec/key_table.hpp"
#include "exec/maintained_input.hpp"
#include "exec/output_change.hpp"

namespace penstock::exec {

/// The change is that of the root's output if the root gives it (GROUP BY, DISTINCT), else that of the plan's rows.
/// Needs no state but the versions of the sources: rows that were added and removed in the same run cancel out.
class AnswerChanges final : private Sink {
public:
    /// `root`: the plan's root, which was compiled just before as the first node to `op`.
    AnswerChanges(const Spec& root, Operator& op, Compiler& compiler);

    /// Runs the plan. Pushes the added rows, then the removed ones, if the caller holds the answer of the last run and
    /// its change is known; else pushes the answer.
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
