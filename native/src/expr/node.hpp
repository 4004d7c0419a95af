// The operators of a compiled expression. Each computes a column for a selection of rows.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "expr/frame.hpp"
#include "spec.hpp"

namespace penstock::expr {

class Node {
public:
    virtual ~Node() = default;

    /// out[k] = the value for row rows[k]; errors are values of type Error.
    virtual void evaluate(Frame& frame, Rows rows, Value* out) const = 0;
    /// out[k] = the effective boolean value for row rows[k].
    virtual void test(Frame& frame, Rows rows, Truth* out) const;

    /// The slot of a variable, or the id of a constant: operators can then compare ids without values.
    virtual std::optional<Slot> variable() const { return std::nullopt; }
    virtual std::optional<TermId> constant() const { return std::nullopt; }
};
using NodePtr = std::unique_ptr<Node>;

/// A node that computes truth values. Its values are derived from the truth values.
class LogicNode : public Node {
public:
    void evaluate(Frame& frame, Rows rows, Value* out) const final;
    void test(Frame& frame, Rows rows, Truth* out) const override = 0;
};

/// A column of ids that is read without decoding: a variable's or a constant's.
class IdColumn {
public:
    static std::optional<IdColumn> of(const Node& node, const Frame& frame);
    TermId operator[](std::uint32_t row) const { return column_ ? (*column_)[row] : constant_; }

private:
    const Column* column_ = nullptr;
    TermId constant_ = kUnbound;
};

/// An operand's values for a selection of rows. A constant is decoded once.
class Operand {
public:
    Operand(Frame& frame, const Node& node, Rows rows) {
        if (const auto id = node.constant()) {
            frame.decode(*id, constant_);
        } else {
            column_.emplace(frame);
            node.evaluate(frame, rows, column_->data());
        }
    }
    bool constant() const { return !column_; }
    const Value& operator[](std::size_t k) { return column_ ? (*column_)[k] : constant_; }

private:
    std::optional<ValueColumn> column_;
    Value constant_;
};

/// Throws Error if the spec is malformed, LimitError if it is nested too deeply.
NodePtr compile_node(const Spec& spec, int depth = 0);

NodePtr make_variable(Slot slot);
NodePtr make_constant(TermId id);
NodePtr make_exists(std::size_t subplan, bool negated);

/// Nodes for calls with their own evaluation rules (logic, comparison, arithmetic, forms); null for other names.
NodePtr make_operator(const std::string& name, std::vector<NodePtr>& arguments);
NodePtr make_form(const std::string& name, std::vector<NodePtr>& arguments);
/// A function of functions.hpp.
NodePtr make_call(const std::string& name, std::vector<NodePtr> arguments, const Spec& spec);

}  // namespace penstock::expr
