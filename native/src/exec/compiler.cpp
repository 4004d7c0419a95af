#include "exec/compiler.hpp"

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace penstock::exec {

namespace {

using Factory = OperatorPtr (*)(const Spec&, Compiler&);

Factory factory(const std::string& op) {
    static const std::unordered_map<std::string_view, Factory> factories = {
        {"seed", make_seed},          {"outer", make_outer},         {"values", make_values},
        {"empty", make_empty},        {"scan", make_scan},           {"path", make_path},
        {"graphs", make_graphs},      {"filter", make_filter},       {"extend", make_extend},
        {"project", make_project},    {"union", make_union},         {"join", make_join},
        {"leftjoin", make_left_join}, {"minus", make_minus},         {"optional", make_optional},
        {"lateral", make_lateral},    {"semijoin", make_semijoin},   {"group", make_group},
        {"distinct", make_distinct},  {"reduced", make_reduced},     {"order", make_order},
        {"slice", make_slice},        {"construct", make_construct}, {"describe", make_describe},
        {"fork", make_fork},
    };
    auto found = factories.find(op);
    if (found == factories.end()) throw Error("plan: unknown operator '" + op + "'");
    return found->second;
}

/// Operators that read no data themselves, and scans.
const std::set<std::string, std::less<>> kOnlyLookUp = {
    "seed",  "outer",    "values",  "empty",    "scan",  "project",  "union",   "join",
    "minus", "leftjoin", "lateral", "optional", "slice", "distinct", "reduced", "semijoin"};

}  // namespace

Compiler::Compiler(const Spec& plan) : plan_(plan), slots_(plan.at("slots").as_int()) {
    for (Slot slot : slot_list(plan.at("seed"))) seed_.add(slot, false);
}

OperatorPtr Compiler::node(const Spec& spec) {
    if (++depth_ > kMaxDepth) throw Error("plan: nested too deeply");
    only_lookups_ = only_lookups_ && kOnlyLookUp.contains(spec.at("op").as_string());
    OperatorPtr made = factory(spec.at("op").as_string())(spec, *this);
    --depth_;
    made->profile_index_ = static_cast<std::uint32_t>(profile_ids_.size());
    profile_ids_.push_back(static_cast<std::uint32_t>(spec.at("id").as_int()));
    if (made->correlated()) correlated_.push_back(made.get());
    return made;
}

OperatorPtr Compiler::inner(const Spec& spec, const OuterRows& outer) {
    const OuterRows* enclosing = std::exchange(outer_, &outer);
    OperatorPtr made = node(spec);
    outer_ = enclosing;
    return made;
}

std::unique_ptr<SubPlan> Compiler::sub_plan(std::size_t number, const Schema& rows) {
    const Spec* all = plan_.find("subplans");
    if (all == nullptr || number >= all->as_list().size()) throw Error("plan: no sub-plan " + std::to_string(number));
    const Spec& spec = all->as_list()[number];
    auto made = std::make_unique<SubPlan>();
    made->number = number;
    made->outer = std::make_unique<OuterRows>();
    made->outer->schema = rows;
    made->outer->schema.add(slot(spec.at("row")), false);
    made->root = inner(spec.at("node"), *made->outer);
    if (made->root->schema().index_of(made->outer->schema.slots.back()) < 0)
        throw Error("plan: sub-plan " + std::to_string(number) + " loses its row number");
    return made;
}

void Compiler::find_sub_plans(const Spec& expression, const Schema& rows) {
    has_expressions_ = true;
    if (const Spec* exists = expression.find("exists")) {
        std::size_t number = exists->as_int();
        sub_plans_.push_back(sub_plan(number, rows));
    }
    if (const Spec* arguments = expression.find("args"))
        for (const Spec& argument : arguments->as_list()) find_sub_plans(argument, rows);
}

std::unique_ptr<Expression> Compiler::expression(const Spec& spec, const Schema& rows) {
    find_sub_plans(spec, rows);
    return Expression::compile(spec);
}

std::unique_ptr<Expression> Compiler::expression_at(const Spec& spec, const char* member, const Schema& rows) {
    const Spec* found = spec.find(member);
    return found == nullptr ? nullptr : expression(*found, rows);
}

Slot Compiler::slot(const Spec& spec) const {
    std::uint64_t number = spec.as_int();
    if (number >= slots_ || number > 0xFFFF) throw Error("plan: slot " + std::to_string(number) + " is out of range");
    return static_cast<Slot>(number);
}

std::vector<Slot> Compiler::slot_list(const Spec& spec) const {
    std::vector<Slot> list;
    for (const Spec& item : spec.as_list()) list.push_back(slot(item));
    return list;
}

int Compiler::slot_at(const Spec& spec, const char* member) const {
    const Spec* found = spec.find(member);
    return found == nullptr ? -1 : slot(*found);
}

TermRef Compiler::term(const Spec& spec) const {
    TermRef ref;
    if (const Spec* var = spec.find("var")) {
        ref.variable = true;
        ref.slot = slot(*var);
    } else {
        ref.id = spec.at("id").as_int();
        if (ref.id == kUnbound) throw Error("plan: a constant term has id 0");
    }
    return ref;
}

}  // namespace penstock::exec
