// Compiles a plan's spec into a tree of operators.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/operator.hpp"
#include "spec.hpp"

namespace penstock::exec {

/// `T` of the plan format: a variable's slot, or a constant.
struct TermRef {
    bool variable = false;
    Slot slot = 0;
    TermId id = 0;
    bool omitted = false;  // an end of a scan that is free and not output
};

/// A sub-plan for EXISTS, compiled for one schema of outer rows.
struct SubPlan {
    std::size_t number;
    std::unique_ptr<OuterRows> outer;
    OperatorPtr root;
};

/// Compiles the nodes of one plan. Throws an Error that names the malformed part.
class Compiler {
public:
    explicit Compiler(const Spec& plan);

    OperatorPtr root() { return node(plan_.at("root")); }
    OperatorPtr node(const Spec& spec);
    OperatorPtr child(const Spec& spec, const char* member) { return node(spec.at(member)); }
    /// Compiles the inner side of a correlated operator. The leaves with the op `outer` read the rows of the argument
    /// `outer`.
    OperatorPtr inner(const Spec& spec, const OuterRows& outer);
    /// Compiles an expression over rows of the given schema, and the sub-plans that it tests.
    std::unique_ptr<Expression> expression(const Spec& spec, const Schema& rows);
    /// The expression in an optional member; null if absent.
    std::unique_ptr<Expression> expression_at(const Spec& spec, const char* member, const Schema& rows);
    /// Compiles the sub-plans that an expression tests, for rows of the given schema.
    void find_sub_plans(const Spec& expression, const Schema& rows);
    std::unique_ptr<SubPlan> sub_plan(std::size_t number, const Schema& rows);
    /// Whether any compiled operator evaluates expressions.
    bool has_expressions() const { return has_expressions_; }
    /// Whether the rows depend only on the seed and on look-ups by scans, and neither on other input nor on random
    /// values.
    bool follows_from_lookups() const { return !has_expressions_ && only_lookups_; }

    Slot slot(const Spec& spec) const;
    std::vector<Slot> slot_list(const Spec& spec) const;
    /// The slot in an optional member; -1 if absent.
    int slot_at(const Spec& spec, const char* member) const;
    TermRef term(const Spec& spec) const;
    const Schema& seed() const { return seed_; }
    const OuterRows* outer() const { return outer_; }

    /// Correlated operators, to be released at the end of each run.
    const std::vector<Operator*>& correlated() const { return correlated_; }
    std::vector<std::unique_ptr<SubPlan>> take_sub_plans() { return std::move(sub_plans_); }
    /// Plan ids by profile index.
    const std::vector<std::uint32_t>& profile_ids() const { return profile_ids_; }

private:
    static constexpr std::size_t kMaxDepth = 2000;
    const Spec& plan_;
    std::size_t slots_;
    Schema seed_;
    const OuterRows* outer_ = nullptr;
    std::size_t depth_ = 0;
    bool has_expressions_ = false, only_lookups_ = true;
    std::vector<std::unique_ptr<SubPlan>> sub_plans_;
    std::vector<std::uint32_t> profile_ids_;
    std::vector<Operator*> correlated_;
};

// One factory per kind of node, defined in the file of its operator.
OperatorPtr make_seed(const Spec&, Compiler&);  // leaves.cpp
OperatorPtr make_outer(const Spec&, Compiler&);
OperatorPtr make_values(const Spec&, Compiler&);
OperatorPtr make_empty(const Spec&, Compiler&);
OperatorPtr make_scan(const Spec&, Compiler&);    // scan.cpp
OperatorPtr make_path(const Spec&, Compiler&);    // path.cpp
OperatorPtr make_graphs(const Spec&, Compiler&);  // graphs.cpp
OperatorPtr make_filter(const Spec&, Compiler&);  // rowwise.cpp
OperatorPtr make_extend(const Spec&, Compiler&);
OperatorPtr make_project(const Spec&, Compiler&);
OperatorPtr make_union(const Spec&, Compiler&);  // union.cpp
OperatorPtr make_join(const Spec&, Compiler&);   // join.cpp
OperatorPtr make_left_join(const Spec&, Compiler&);
OperatorPtr make_minus(const Spec&, Compiler&);
OperatorPtr make_optional(const Spec&, Compiler&);  // correlated.cpp
OperatorPtr make_lateral(const Spec&, Compiler&);
OperatorPtr make_semijoin(const Spec&, Compiler&);
OperatorPtr make_fork(const Spec&, Compiler&);      // fork.cpp
OperatorPtr make_group(const Spec&, Compiler&);     // group.cpp
OperatorPtr make_distinct(const Spec&, Compiler&);  // distinct.cpp
OperatorPtr make_reduced(const Spec&, Compiler&);
OperatorPtr make_order(const Spec&, Compiler&);                   // order.cpp
OperatorPtr make_having(OperatorPtr in, const Spec&, Compiler&);  // having.cpp
OperatorPtr make_slice(const Spec&, Compiler&);                   // slice.cpp
OperatorPtr make_construct(const Spec&, Compiler&);               // construct.cpp
OperatorPtr make_describe(const Spec&, Compiler&);                // describe.cpp

}  // namespace penstock::exec
