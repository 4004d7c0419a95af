// An executable tree of operators: a plan's compiled form for one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "exec/answer_changes.hpp"
#include "exec/collected.hpp"
#include "exec/compiler.hpp"
#include "exec/executor.hpp"

namespace penstock::exec {

class Program {
public:
    explicit Program(const Spec& plan);
    /// After an exception the program must not be used again: its operators are in an undefined state.
    Answer run(const RunInput& input);

private:
    void run_root(Run& run, const RunInput& input);
    Answer unchanged(const RunInput& input);
    void exists(Run& run, std::size_t number, const Table& rows, std::vector<std::uint8_t>& found);
    SubPlan& sub_plan(std::size_t number, const Table& rows);
    void fill(std::vector<Profile::Figure>& out, const std::vector<std::uint64_t>& values) const;

    Compiler compiler_;
    OperatorPtr root_;
    std::unique_ptr<AnswerChanges> changes_;  // of plans with `changes`
    std::vector<std::unique_ptr<SubPlan>> sub_plans_;
    Collected answer_;
    LookupMemo lookup_memo_;
    std::uint64_t memoized_id_ = 0;  // of the memoized answer, for plans with `changes`; 0: it has none
    Answer no_rows_;                 // the change of an unchanged answer
    MaintenanceReport report_;
    std::vector<std::uint64_t> produced_;    // rows by profile index, of the last run that may be memoized
    std::vector<std::uint64_t> unmemoized_;  // the same of the last run that may not be memoized
    std::uint64_t runs_ = 0;
};

}  // namespace penstock::exec
