// The change of an answer since an earlier run, for ISTREAM and DSTREAM (ADR 81).
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.hpp"
#include "exec/key_table.hpp"
#include "exec/maintained_input.hpp"

namespace penstock::exec {

/// Needs no state but the versions of the sources: rows that were added and removed in the same run cancel out.
class AnswerChanges final : private Sink {
public:
    /// `root`: the plan's root, which was compiled just before as the first node.
    AnswerChanges(const Spec& root, const Schema& schema, Compiler& compiler);

    /// Pushes the added rows, then the removed ones, if the caller holds the answer of the last run and its change is
    /// known. Returns false if the plan has to be run; call evaluated() after that.
    bool update(Run& run, AnswerChange& change, Sink& out);
    void evaluated(Run& run, AnswerChange& change);

private:
    bool consume(Table& rows) override;
    std::size_t push_net(Run& run, Sink& out, int sign);
    void keep(Run& run, AnswerChange& change);

    MaintainedInput input_;
    Run* run_ = nullptr;
    Table buffer_;
    KeyTable changed_;
    std::vector<std::int64_t> net_;  // by distinct row
    std::vector<const TermId*> keys_;
    std::vector<std::uint32_t> ids_, taken_;
    int sign_ = 1;
    bool wants_ = false;
    std::uint64_t id_ = 0;  // of the last run's answer; 0: its change cannot be found
};

}  // namespace penstock::exec
