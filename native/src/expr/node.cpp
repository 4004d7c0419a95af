#include "expr/node.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace penstock::expr {
namespace {

class VariableNode final : public Node {
public:
    explicit VariableNode(Slot slot) : slot_(slot) {}
    void evaluate(Frame& frame, Rows rows, Value* out) const override {
        const Column* column = frame.table.find(slot_);
        if (column == nullptr) {
            std::fill_n(out, rows.size(), Value{});
            return;
        }
        for (std::size_t k = 0; k < rows.size(); ++k) frame.decode((*column)[rows[k]], out[k]);
    }
    std::optional<Slot> variable() const override { return slot_; }

private:
    Slot slot_;
};

class ConstantNode final : public Node {
public:
    explicit ConstantNode(TermId id) : id_(id) {}
    void evaluate(Frame& frame, Rows rows, Value* out) const override {
        std::fill_n(out, rows.size(), frame.decode(id_));
    }
    std::optional<TermId> constant() const override { return id_; }

private:
    TermId id_;
};

class ExistsNode final : public LogicNode {
public:
    ExistsNode(std::size_t subplan, bool negated) : subplan_(subplan), negated_(negated) {}
    void test(Frame& frame, Rows rows, Truth* out) const override {
        const std::vector<std::uint8_t>& found = frame.exists(subplan_);
        for (std::size_t k = 0; k < rows.size(); ++k) out[k] = truth((found[rows[k]] != 0) != negated_);
    }

private:
    std::size_t subplan_;
    bool negated_;
};

Slot slot_of(const Spec& spec) {
    const std::uint64_t slot = spec.as_int();
    if (slot > UINT16_MAX) throw Error("plan: slot " + std::to_string(slot) + " is out of range");
    return static_cast<Slot>(slot);
}

NodePtr compile_call(const Spec& spec, int depth) {
    const std::string& name = spec.at("call").as_string();
    std::vector<NodePtr> arguments;
    if (const Spec* list = spec.find("args"))
        for (const Spec& argument : list->as_list()) arguments.push_back(compile_node(argument, depth + 1));
    if (NodePtr node = make_operator(name, arguments)) return node;
    if (NodePtr node = make_form(name, arguments)) return node;
    return make_call(name, std::move(arguments), spec);
}

}  // namespace

void Node::test(Frame& frame, Rows rows, Truth* out) const {
    ValueColumn values(frame);
    evaluate(frame, rows, values.data());
    for (std::size_t k = 0; k < rows.size(); ++k) out[k] = effective_boolean(values[k]);
}

void LogicNode::evaluate(Frame& frame, Rows rows, Value* out) const {
    std::array<Truth, kChunk> truths;
    test(frame, rows, truths.data());
    for (std::size_t k = 0; k < rows.size(); ++k) out[k] = to_value(truths[k]);
}

std::optional<IdColumn> IdColumn::of(const Node& node, const Frame& frame) {
    IdColumn out;
    if (const auto slot = node.variable())
        out.column_ = frame.table.find(*slot);  // if the table has no such column, unbound in every row
    else if (const auto constant = node.constant())
        out.constant_ = *constant;
    else
        return std::nullopt;
    return out;
}

NodePtr make_variable(Slot slot) { return std::make_unique<VariableNode>(slot); }
NodePtr make_constant(TermId id) { return std::make_unique<ConstantNode>(id); }
NodePtr make_exists(std::size_t subplan, bool negated) { return std::make_unique<ExistsNode>(subplan, negated); }

NodePtr compile_node(const Spec& spec, int depth) {
    constexpr int kMaxDepth = 500;
    if (depth > kMaxDepth) throw LimitError("an expression is nested more than 500 levels deep");
    if (const Spec* slot = spec.find("var")) return make_variable(slot_of(*slot));
    if (const Spec* id = spec.find("id")) return make_constant(id->as_int());
    if (const Spec* subplan = spec.find("exists")) {
        const Spec* negated = spec.find("not");
        return make_exists(subplan->as_int(), negated != nullptr && negated->as_bool());
    }
    return compile_call(spec, depth);
}

}  // namespace penstock::expr
