// The framework of the executor: operators push tables of at most kMorsel rows to their consumer.
//
// With push instead of pull, every intermediate result is in a small buffer that stays in cache. There is one virtual
// call per operator and morsel, and a consumer that needs no more rows (LIMIT, ASK, EXISTS) stops its producers. Only
// operators that need their whole input (hash sides, groups, ORDER BY) buffer it, charged to the budget.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/budget.hpp"
#include "exec/forking.hpp"
#include "exec/lookup_memo.hpp"
#include "exec/maintenance.hpp"
#include "exec/profiler.hpp"
#include "exec/table.hpp"
#include "expr/expression.hpp"
#include "source.hpp"
#include "store/labels.hpp"

namespace penstock::exec {

/// The maximum number of rows per push. A column of a buffer is therefore at most 8 KiB.
inline constexpr std::size_t kMorsel = 1024;

/// The columns of an operator's output, known when the plan is compiled. A column that is not nullable has a value in
/// every row. In such a column, 0 is an ordinary value, because row numbers and members can start at 0.
struct Schema {
    std::vector<Slot> slots;
    std::vector<std::uint8_t> nullable;

    int index_of(Slot slot) const;
    void add(Slot slot, bool may_be_unbound);
    /// Gives a table these slots and as many columns; reuses the memory of existing columns.
    void shape(Table& table) const;
};

class IndexedSeed;

class Sink {
public:
    /// Accepts at most kMorsel rows. The consumer is allowed to exchange the vectors of the columns, but must not
    /// change the slots or the number of columns, because the producer refills the table for its next call. Returns
    /// false if the consumer needs no further rows.
    bool push(Table& rows) {
        pushed_ += rows.rows;
        return consume(rows);
    }
    /// Rows pushed so far, by all producers and runs.
    std::uint64_t pushed() const { return pushed_; }

protected:
    ~Sink() = default;
    virtual bool consume(Table& rows) = 0;

private:
    std::uint64_t pushed_ = 0;
};

/// The state that all operators of one run share.
struct Run {
    Run(const Table& seed, std::span<const Source* const> sources, const LabelTable& labels, ExprContext& expressions,
        Profiler* profiler, Forker* forker, std::uint64_t number, std::vector<std::uint64_t>& produced)
        : seed(seed),
          sources(sources),
          labels(labels),
          expressions(expressions),
          profiler(profiler),
          forker(forker),
          number(number),
          produced(produced) {}

    const Table& seed;
    std::span<const Source* const> sources;
    const LabelTable& labels;
    ExprContext& expressions;
    Profiler* profiler;
    Forker* forker;                        // nullptr: all steps run locally
    std::uint64_t number;                  // of this run; identifies data that is valid until its end
    std::vector<std::uint64_t>& produced;  // rows by profile index
    IndexedSeed* indexed_seed = nullptr;   // has `seed`; null: it has no indexes
    LookupMemo* lookup_memo = nullptr;     // records the look-ups; null = not recorded
    MaintenanceReport* report = nullptr;   // null: not wanted

    Budget& budget() { return expressions.budget; }
    /// Counts work. After about every 16 K rows, checks the clock and the cancellation flag.
    void work(std::size_t rows) {
        work_ += rows + 16;
        if (work_ < kCheckEvery) return;
        work_ = 0;
        expressions.budget.check();
    }

private:
    static constexpr std::size_t kCheckEvery = std::size_t{16} << 10;
    std::size_t work_ = 0;
};

/// One node of a compiled plan with its buffers. It serves one run at a time (executor.cpp has one tree of operators
/// per concurrent run of the plan).
class Operator {
public:
    virtual ~Operator() = default;
    const Schema& schema() const { return schema_; }
    /// Whether the rows depend on the outer rows of the enclosing sub-plan; otherwise they are constant within a run.
    bool correlated() const { return correlated_; }
    /// Pushes the output to `out`, until the output is complete or `out` needs no more rows.
    void run(Run& run, Sink& out);
    /// Called at the end of the run: frees what a correlated operator retains between its runs.
    virtual void release(Run&) {}

protected:
    virtual void produce(Run& run, Sink& out) = 0;
    Schema schema_;
    bool correlated_ = false;

private:
    friend class Compiler;
    std::uint32_t profile_index_ = 0;
};

using OperatorPtr = std::unique_ptr<Operator>;

/// An operator over one input that processes it morsel by morsel.
class Unary : public Operator, protected Sink {
protected:
    explicit Unary(OperatorPtr in) : in_(std::move(in)) { correlated_ = in_->correlated(); }
    void produce(Run& run, Sink& out) final;
    virtual void begin() {}   // before the first morsel
    virtual void finish() {}  // after the last one
    bool consume(Table& rows) override = 0;

    OperatorPtr in_;
    Run* run_ = nullptr;
    Sink* out_ = nullptr;
};

/// The outer rows of a correlated inner plan, and the slot with their numbers, which begin at `first_row`. The operator
/// that owns the inner plan sets these members before each run of the inner plan.
struct OuterRows {
    Schema schema;  // the outer columns, then the row number
    const Table* rows = nullptr;
    std::uint64_t first_row = 1;
};

}  // namespace penstock::exec
