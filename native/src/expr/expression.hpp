// SPARQL expressions over a binding table, column-wise. docs/plan-format.md describes their specs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/budget.hpp"
#include "exec/table.hpp"
#include "rdf/dictionary.hpp"
#include "spec.hpp"

namespace penstock {

namespace expr {
struct Memory;
}

/// The data of an evaluation that its expressions can use.
struct ExprContext {
    LocalTerms& terms;
    Budget& budget;
    std::int64_t now_ms = 0;                                             // NOW(): the instant t of a standing query
    std::span<const std::int64_t> window_starts = {}, window_ends = {};  // by window index of the plan
    std::uint64_t random_seed = 0;
    /// EXISTS { subplan }: found[i] = 1 if the sub-plan has a solution compatible with row i. Set by the executor.
    std::function<void(std::size_t subplan, const Table& rows, std::vector<std::uint8_t>& found)> exists = nullptr;
    /// penstock:timestamp(s, p, o): latest event time in the query's windows, or kNever. Set by the executor.
    std::function<std::int64_t(TermId s, TermId p, TermId o)> timestamp = nullptr;
    /// Functions implemented in Python (regex, replace, hashes, unusual dates): name and argument terms -> result. A
    /// result of Kind::Unbound is an error of the expression. Called once per distinct argument list; results are
    /// memoized. The binding acquires the GIL.
    std::function<TermId(const std::string& name, std::span<const TermId> arguments, LocalTerms& terms)> foreign =
        nullptr;
    /// The caches of expressions between calls within one evaluation (expr/memory.hpp). Created at the first use.
    std::shared_ptr<expr::Memory> memory = nullptr;
};

class Expression {
public:
    virtual ~Expression() = default;
    static std::unique_ptr<Expression> compile(const Spec& spec);

    /// Sets out[i] to the value for row i, or to kUnbound if the expression has an error. Resizes `out` to rows.rows.
    virtual void evaluate(const Table& rows, ExprContext& context, Column& out) const = 0;
    /// Sets keep[i] to 1 if the effective boolean value for row i is true. An error counts as false. Resizes `keep`.
    virtual void test(const Table& rows, ExprContext& context, std::vector<std::uint8_t>& keep) const = 0;
};

/// One aggregate over many groups at once.
class Aggregate {
public:
    virtual ~Aggregate() = default;
    /// spec: {"agg": "count"|"count_star"|"sum"|"avg"|"min"|"max"|"sample"|"group_concat", "distinct": bool, "expr": E,
    /// "separator": text}
    static std::unique_ptr<Aggregate> compile(const Spec& spec);
    virtual void reset(std::size_t groups) = 0;
    /// Adds empty groups, so that there are `groups` groups in total. The state of existing groups is unchanged. The
    /// executor can therefore aggregate its input incrementally.
    virtual void grow(std::size_t groups) = 0;
    /// Adds rows; row i belongs to group_of[i]. count_star with distinct compares whole rows, without the slots in
    /// `hidden`.
    virtual void add(const Table& rows, std::span<const std::uint32_t> group_of, std::span<const Slot> hidden,
                     ExprContext& context) = 0;
    /// Sets out[g] to the result of group g, or to kUnbound if the aggregate has an error (SPARQL 1.1 §18.5.1).
    virtual void finish(ExprContext& context, Column& out) = 0;
};

/// ORDER BY's order of terms by value (SPARQL 1.1 §15.1): 0 for equal values, regardless of spelling or datatype.
int value_compare(TermId a, TermId b, const LocalTerms& terms);

/// ORDER BY's total order of terms (SPARQL 1.1 §15.1): unbound < blank < IRI < literal. Literals are compared by value
/// if their values are comparable, and then by text, so that the order is deterministic. Returns a negative number, 0
/// or a positive number. 0 only for terms that the order cannot distinguish.
int order_compare(TermId a, TermId b, const LocalTerms& terms);

}  // namespace penstock
