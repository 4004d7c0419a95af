// Comparison, arithmetic and logic, column by column.
#include <algorithm>
#include <array>

#include "expr/arithmetic.hpp"
#include "expr/compare.hpp"
#include "expr/node.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock::expr {
namespace {

bool apply(Comparison operation, auto a, auto b) {
    switch (operation) {
        case Comparison::Equal:
            return a == b;
        case Comparison::NotEqual:
            return a != b;
        case Comparison::Less:
            return a < b;
        case Comparison::Greater:
            return a > b;
        case Comparison::LessEqual:
            return a <= b;
        case Comparison::GreaterEqual:
            return a >= b;
    }
    return false;
}

bool is_exact(TermId id) { return tag_of(id) == Tag::Integer || tag_of(id) == Tag::Decimal; }
DecimalParts exact_parts(TermId id) {
    return tag_of(id) == Tag::Integer ? DecimalParts{integer_value(id), 0} : decimal_value(id);
}

/// Compares inline integers and decimals exactly: mantissas have 55 bits, so scaling by at most 10^18 fits 128 bits.
bool compare_exact(Comparison operation, DecimalParts a, DecimalParts b) {
    if (a.scale == b.scale) return apply(operation, a.mantissa, b.mantissa);
    Int128 x = a.mantissa, y = b.mantissa;
    for (int scale = a.scale; scale < b.scale; ++scale) x *= 10;
    for (int scale = b.scale; scale < a.scale; ++scale) y *= 10;
    return apply(operation, x, y);
}

/// Compares two terms by their ids if these decide, otherwise by value.
Truth compare_ids(Frame& frame, Comparison operation, TermId a, TermId b) {
    if (a == kUnbound || b == kUnbound) return Truth::Error;
    if (is_exact(a) && is_exact(b)) return truth(compare_exact(operation, exact_parts(a), exact_parts(b)));
    if (tag_of(a) == Tag::Double && tag_of(b) == Tag::Double)
        return truth(apply(operation, double_value(a), double_value(b)));
    if (tag_of(a) == Tag::Double && tag_of(b) == Tag::Integer)
        return truth(apply(operation, double_value(a), static_cast<double>(integer_value(b))));
    const auto names = [](TermId id) { return tag_of(id) == Tag::Iri || tag_of(id) == Tag::Blank; };
    if (operation <= Comparison::NotEqual && (names(a) || names(b)) && tag_of(a) != Tag::Local &&
        tag_of(b) != Tag::Local)
        return truth((a == b) == (operation == Comparison::Equal));
    return compare(operation, frame.decode(a), frame.decode(b));
}

class CompareNode final : public LogicNode {
public:
    CompareNode(Comparison operation, NodePtr a, NodePtr b)
        : operation_(operation), a_(std::move(a)), b_(std::move(b)) {}
    void test(Frame& frame, Rows rows, Truth* out) const override {
        const auto a_ids = IdColumn::of(*a_, frame), b_ids = IdColumn::of(*b_, frame);
        if (a_ids && b_ids) {
            for (std::size_t k = 0; k < rows.size(); ++k)
                out[k] = compare_ids(frame, operation_, (*a_ids)[rows[k]], (*b_ids)[rows[k]]);
            return;
        }
        Operand a(frame, *a_, rows), b(frame, *b_, rows);
        for (std::size_t k = 0; k < rows.size(); ++k) out[k] = compare(operation_, a[k], b[k]);
    }

private:
    Comparison operation_;
    NodePtr a_, b_;
};

class ArithmeticNode final : public Node {
public:
    ArithmeticNode(Arithmetic operation, NodePtr a, NodePtr b)
        : operation_(operation), a_(std::move(a)), b_(std::move(b)) {}
    void evaluate(Frame& frame, Rows rows, Value* out) const override {
        Operand a(frame, *a_, rows), b(frame, *b_, rows);
        for (std::size_t k = 0; k < rows.size(); ++k) out[k] = compute(operation_, a[k], b[k]);
    }

private:
    Arithmetic operation_;
    NodePtr a_, b_;
};

class SignNode final : public Node {
public:
    SignNode(bool negative, NodePtr operand) : negative_(negative), operand_(std::move(operand)) {}
    void evaluate(Frame& frame, Rows rows, Value* out) const override {
        operand_->evaluate(frame, rows, out);
        for (std::size_t k = 0; k < rows.size(); ++k)
            out[k] = negative_ ? negate(out[k]) : out[k].numeric() ? out[k] : Value{};
    }

private:
    bool negative_;
    NodePtr operand_;
};

class NotNode final : public LogicNode {
public:
    explicit NotNode(NodePtr operand) : operand_(std::move(operand)) {}
    void test(Frame& frame, Rows rows, Truth* out) const override {
        operand_->test(frame, rows, out);
        for (std::size_t k = 0; k < rows.size(); ++k)
            if (out[k] != Truth::Error) out[k] = truth(out[k] == Truth::False);
    }

private:
    NodePtr operand_;
};

/// && and || of two or more operands (§17.2): a deciding value (false for &&, true for ||) takes precedence over
/// errors. Later operands are computed only for rows that are still undecided.
class ConnectiveNode final : public LogicNode {
public:
    ConnectiveNode(Truth decisive, std::vector<NodePtr> operands)
        : decisive_(decisive), operands_(std::move(operands)) {}

    void test(Frame& frame, Rows rows, Truth* out) const override {
        operands_[0]->test(frame, rows, out);
        std::array<std::uint32_t, kChunk> open_rows, positions;
        std::array<Truth, kChunk> next;
        for (std::size_t i = 1; i < operands_.size(); ++i) {
            std::size_t open = 0;
            for (std::size_t k = 0; k < rows.size(); ++k) {
                if (out[k] == decisive_) continue;
                open_rows[open] = rows[k];
                positions[open++] = static_cast<std::uint32_t>(k);
            }
            if (open == 0) return;
            operands_[i]->test(frame, {open_rows.data(), open}, next.data());
            for (std::size_t j = 0; j < open; ++j) {
                Truth& all = out[positions[j]];
                if (next[j] == decisive_ || all != Truth::Error) all = next[j];
            }
        }
    }

private:
    Truth decisive_;
    std::vector<NodePtr> operands_;
};

constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
    {"=", Comparison::Equal},   {"!=", Comparison::NotEqual},  {"<", Comparison::Less},
    {">", Comparison::Greater}, {"<=", Comparison::LessEqual}, {">=", Comparison::GreaterEqual},
};
constexpr std::pair<std::string_view, Arithmetic> kArithmetics[] = {
    {"+", Arithmetic::Add},
    {"-", Arithmetic::Subtract},
    {"*", Arithmetic::Multiply},
    {"/", Arithmetic::Divide},
};

void require(const std::string& name, const std::vector<NodePtr>& arguments, std::size_t least, std::size_t most) {
    if (arguments.size() < least || arguments.size() > most)
        throw Error("plan: '" + name + "' does not take " + std::to_string(arguments.size()) + " arguments");
}

}  // namespace

NodePtr make_operator(const std::string& name, std::vector<NodePtr>& arguments) {
    for (const auto& [symbol, operation] : kComparisons) {
        if (name != symbol) continue;
        require(name, arguments, 2, 2);
        return std::make_unique<CompareNode>(operation, std::move(arguments[0]), std::move(arguments[1]));
    }
    for (const auto& [symbol, operation] : kArithmetics) {
        if (name != symbol) continue;
        require(name, arguments, 2, 2);
        return std::make_unique<ArithmeticNode>(operation, std::move(arguments[0]), std::move(arguments[1]));
    }
    if (name == "neg" || name == "pos" || name == "not") {
        require(name, arguments, 1, 1);
        if (name == "not") return std::make_unique<NotNode>(std::move(arguments[0]));
        return std::make_unique<SignNode>(name == "neg", std::move(arguments[0]));
    }
    if (name == "and" || name == "or") {
        require(name, arguments, 1, SIZE_MAX);
        return std::make_unique<ConnectiveNode>(truth(name == "or"), std::move(arguments));
    }
    return nullptr;
}

}  // namespace penstock::expr
