// Settings and counts of maintained evaluation (ADR 78), and the reports of operators about it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace penstock::exec {

struct Maintenance {
    static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
    /// For the whole process: operators keep their state if the evaluation of their input costs at least this number of
    /// rows. 0: operators always keep their state, and update it at any cost. kNever: operators never keep their state.
    /// Relaxed, because a change needs to affect only evaluations that start later.
    static inline std::atomic<std::uint64_t> from = 2048;
    /// Number of updates of the process so far. Relaxed: a statistic.
    static inline std::atomic<std::uint64_t> updates = 0;
};

/// How an operator was evaluated: updated, or completely for one of these reasons.
enum class Outcome : std::uint8_t {
    Updated,
    NoState,
    Unsupported,
    SmallInput,
    LargeChange,
    UnknownChange,
    OtherMembers,
    NotHeld,
    Paused,
    DearUpdate,
    Budget,
    RunTerms,
    Stopped,
    Emptied,
};

/// The reason for a complete evaluation in words; null if updated.
constexpr const char* reason(Outcome outcome) {
    switch (outcome) {
        case Outcome::Updated:
            return nullptr;
        case Outcome::NoState:
            return "no state of an earlier run";
        case Outcome::Unsupported:
            return "the query or its sources do not support updates";
        case Outcome::SmallInput:
            return "the input is small";
        case Outcome::LargeChange:
            return "the change is too large";
        case Outcome::UnknownChange:
            return "the change is too large or not known";
        case Outcome::OtherMembers:
            return "the queries of the group have changed";
        case Outcome::NotHeld:
            return "the engine does not have the previous answer";
        case Outcome::Paused:
            return "recent states could not be updated";
        case Outcome::DearUpdate:
            return "the last update cost more than a complete evaluation";
        case Outcome::Budget:
            return "the state is too large for the memory limit";
        case Outcome::RunTerms:
            return "an expression computes terms that are valid in one run only";
        case Outcome::Stopped:
            return "the last run did not need all rows";
        case Outcome::Emptied:
            return "most rows of the state were removed";
    }
    return nullptr;
}

/// The last evaluation of an operator that can keep state.
struct MaintainedFigure {
    static constexpr std::uint32_t kAnswer = 0xFFFFFFFF;
    std::uint32_t id = 0;  // of the node; kAnswer: the stream operator, which is not a node of the plan
    Outcome outcome = Outcome::NoState;
    std::uint64_t changed_rows = 0;  // added and removed rows of the input, if updated
    std::size_t state_bytes = 0;     // after the evaluation
};

/// Counts of an engine. Relaxed: statistics.
struct MaintenanceTotals {
    std::atomic<std::uint64_t> updated = 0, complete = 0;  // evaluations of operators
    std::atomic<std::size_t> state_bytes = 0;
};

/// The reports of the operators of a run.
struct MaintenanceReport {
    std::vector<MaintainedFigure> figures;
    std::shared_ptr<MaintenanceTotals> totals;
};

}  // namespace penstock::exec
