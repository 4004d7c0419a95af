// The frame of the executor: operators push tables of at most kMorsel rows to their consumer.
//
// Push instead of pull keeps every intermediate result in a small buffer that stays in cache, makes one virtual call
// per operator and morsel, and lets a consumer that has enough (LIMIT, ASK, EXISTS) stop its producers. Only operators
// that need their whole input (hash sides, groups, ORDER BY) hold it, and what they hold is charged to the budget.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/budget.hpp"
#include "exec/forking.hpp"
#include "exec/lookup_memo.hpp"
#include "exec/profiler.hpp"
#include "exec/table.hpp"
#include "expr/expression.hpp"
#include "source.hpp"
#include "store/labels.hpp"

namespace penstock::exec {

/// Rows that travel together. An operator's buffers hold at most this many: 8 KiB a column.
inline constexpr std::size_t kMorsel = 1024;

/// The columns of an operator's output, known when the plan is compiled. A column that is not nullable holds a value in
/// every row, and 0 is an ordinary value there (row numbers and members start where they like).
struct Schema {
    std::vector<Slot> slots;
    std::vector<std::uint8_t> nullable;

    int index_of(Slot slot) const;
    void add(Slot slot, bool may_be_unbound);
    /// Gives a table these slots and as many columns, keeping the memory of those it has.
    void shape(Table& table) const;
};

class Sink {
public:
    /// Takes at most kMorsel rows. May swap the columns' vectors for others, but leaves slots and number of columns as
    /// they are; the producer fills the table anew for its next call. Returns false where no further rows are wanted.
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

/// What all operators of one run share.
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
    std::uint64_t number;                  // of this run; tags data that is valid until its end
    std::vector<std::uint64_t>& produced;  // rows by profile index
    LookupMemo* lookup_memo = nullptr;     // records the look-ups; null = not recorded

    Budget& budget() { return expressions.budget; }
    /// Counts work and looks at the clock and the cancellation flag now and then: about every 16 K rows.
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

/// One node of a compiled plan together with its buffers: it serves one run at a time (executor.cpp keeps one tree of
/// operators per thread that runs the plan at once).
class Operator {
public:
    virtual ~Operator() = default;
    const Schema& schema() const { return schema_; }
    /// Depends on the outer rows of the sub-plan it is in. Others give the same rows each time within one run.
    bool correlated() const { return correlated_; }
    /// Pushes the whole output, or as much as `out` wants.
    void run(Run& run, Sink& out);
    /// The run is over: gives back what a correlated operator keeps for being run again.
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

/// An operator over one input that handles it morsel by morsel.
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

/// The outer rows of a correlated inner plan, and the slot that numbers them from `first_row`. The operator that owns
/// the inner plan sets them before each run of it.
struct OuterRows {
    Schema schema;  // the outer columns, then the row number
    const Table* rows = nullptr;
    std::uint64_t first_row = 1;
};

}  // namespace penstock::exec
