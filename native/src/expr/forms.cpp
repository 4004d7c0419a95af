// Functional forms: calls that handle errors of their arguments themselves (SPARQL 1.1 §17.4.1).
#include <algorithm>
#include <array>

#include "expr/compare.hpp"
#include "expr/node.hpp"

namespace penstock::expr {
namespace {

/// A subset of a selection's rows, with their positions in the selection.
struct Selection {
    std::array<std::uint32_t, kChunk> rows;
    std::array<std::uint32_t, kChunk> places;
    std::size_t size = 0;

    void add(std::uint32_t row, std::size_t place) {
        rows[size] = row;
        places[size++] = static_cast<std::uint32_t>(place);
    }
    Rows span() const { return {rows.data(), size}; }
};

/// Computes a node for the subset and stores the values at the rows' positions in the selection.
void scatter(Frame& frame, const Node& node, const Selection& selection, Value* out) {
    if (selection.size == 0) return;
    ValueColumn values(frame);
    node.evaluate(frame, selection.span(), values.data());
    for (std::size_t j = 0; j < selection.size; ++j) out[selection.places[j]] = values[j];
}

class BoundNode final : public LogicNode {
public:
    explicit BoundNode(NodePtr operand) : operand_(std::move(operand)) {}
    void test(Frame& frame, Rows rows, Truth* out) const override {
        if (const auto ids = IdColumn::of(*operand_, frame)) {
            for (std::size_t k = 0; k < rows.size(); ++k) out[k] = truth((*ids)[rows[k]] != kUnbound);
            return;
        }
        ValueColumn values(frame);
        operand_->evaluate(frame, rows, values.data());
        for (std::size_t k = 0; k < rows.size(); ++k) out[k] = truth(!values[k].error());
    }

private:
    NodePtr operand_;
};

class IfNode final : public Node {
public:
    IfNode(NodePtr condition, NodePtr yes, NodePtr no)
        : condition_(std::move(condition)), yes_(std::move(yes)), no_(std::move(no)) {}
    void evaluate(Frame& frame, Rows rows, Value* out) const override {
        std::array<Truth, kChunk> truths;
        condition_->test(frame, rows, truths.data());
        Selection yes, no;
        for (std::size_t k = 0; k < rows.size(); ++k) {
            out[k] = {};
            if (truths[k] != Truth::Error) (truths[k] == Truth::True ? yes : no).add(rows[k], k);
        }
        scatter(frame, *yes_, yes, out);
        scatter(frame, *no_, no, out);
    }

private:
    NodePtr condition_, yes_, no_;
};

class CoalesceNode final : public Node {
public:
    explicit CoalesceNode(std::vector<NodePtr> operands) : operands_(std::move(operands)) {}
    void evaluate(Frame& frame, Rows rows, Value* out) const override {
        std::fill_n(out, rows.size(), Value{});
        for (const NodePtr& operand : operands_) {
            Selection open;
            for (std::size_t k = 0; k < rows.size(); ++k)
                if (out[k].error()) open.add(rows[k], k);
            if (open.size == 0) return;
            scatter(frame, *operand, open, out);
        }
    }

private:
    std::vector<NodePtr> operands_;
};

/// x IN (a, b, …) is x = a || x = b || … (§17.4.1.9). IRIs among the list's constants are searched by id, so a long
/// list of them costs one search per row.
class InNode final : public LogicNode {
public:
    InNode(bool negated, NodePtr needle, std::vector<NodePtr> list) : negated_(negated), needle_(std::move(needle)) {
        for (NodePtr& member : list) {
            const auto id = member->constant();
            if (id && is_name(*id))
                names_.push_back(*id);
            else
                others_.push_back(std::move(member));
        }
        std::sort(names_.begin(), names_.end());
    }

    /// Evaluates the first argument even if the list is empty: its error is the result (§17.4.1.9, §17.4.1.10).
    void test(Frame& frame, Rows rows, Truth* out) const override {
        ValueColumn needles(frame);
        needle_->evaluate(frame, rows, needles.data());
        for (std::size_t k = 0; k < rows.size(); ++k) out[k] = among_names(frame, needles[k]);
        for (const NodePtr& member : others_) {
            Selection open;
            for (std::size_t k = 0; k < rows.size(); ++k)
                if (out[k] != Truth::True) open.add(rows[k], k);
            if (open.size == 0) break;
            Operand values(frame, *member, open.span());
            for (std::size_t j = 0; j < open.size; ++j) {
                const Truth equal = compare(Comparison::Equal, needles[open.places[j]], values[j]);
                Truth& any = out[open.places[j]];
                if (equal == Truth::True || any == Truth::False) any = equal;
            }
        }
        if (!negated_) return;
        for (std::size_t k = 0; k < rows.size(); ++k)
            if (out[k] != Truth::Error) out[k] = truth(out[k] == Truth::False);
    }

private:
    static bool is_name(TermId id) { return id != kUnbound && tag_of(id) == Tag::Iri; }
    Truth among_names(Frame& frame, const Value& needle) const {
        if (needle.error()) return Truth::Error;
        if (names_.empty()) return Truth::False;
        if (needle.type != ValueType::Iri) return Truth::False;
        return truth(std::binary_search(names_.begin(), names_.end(), frame.intern(needle)));
    }

    bool negated_;
    NodePtr needle_;
    std::vector<TermId> names_;  // sorted
    std::vector<NodePtr> others_;
};

class SameTermNode final : public LogicNode {
public:
    SameTermNode(NodePtr a, NodePtr b) : a_(std::move(a)), b_(std::move(b)) {}
    void test(Frame& frame, Rows rows, Truth* out) const override {
        const auto a_ids = IdColumn::of(*a_, frame), b_ids = IdColumn::of(*b_, frame);
        if (a_ids && b_ids) {
            for (std::size_t k = 0; k < rows.size(); ++k) out[k] = same((*a_ids)[rows[k]], (*b_ids)[rows[k]]);
            return;
        }
        ValueColumn a(frame), b(frame);
        a_->evaluate(frame, rows, a.data());
        b_->evaluate(frame, rows, b.data());
        frame.number({a.data(), rows.size()});
        frame.number({b.data(), rows.size()});
        for (std::size_t k = 0; k < rows.size(); ++k) out[k] = same(a[k].id, b[k].id);
    }

private:
    static Truth same(TermId a, TermId b) { return a == kUnbound || b == kUnbound ? Truth::Error : truth(a == b); }
    NodePtr a_, b_;
};

/// isIRI, isBlank and isLiteral of a variable: the tag of an id tells the kind of its term, except for computed terms.
class KindNode final : public LogicNode {
public:
    KindNode(const std::string& name, NodePtr operand)
        : kind_(name == "isiri"     ? Tag::Iri
                : name == "isblank" ? Tag::Blank
                                    : Tag::Literal),
          operand_(std::move(operand)) {}
    void test(Frame& frame, Rows rows, Truth* out) const override {
        if (const auto ids = IdColumn::of(*operand_, frame)) {
            for (std::size_t k = 0; k < rows.size(); ++k) out[k] = of_id(frame, (*ids)[rows[k]]);
            return;
        }
        ValueColumn values(frame);
        operand_->evaluate(frame, rows, values.data());
        for (std::size_t k = 0; k < rows.size(); ++k) out[k] = of_value(values[k]);
    }

private:
    Truth of_id(Frame& frame, TermId id) const {
        if (id == kUnbound) return Truth::Error;
        const Tag tag = tag_of(id);
        if (tag == Tag::Local) return of_value(frame.decode(id));
        return truth(kind_ == Tag::Literal ? tag != Tag::Iri && tag != Tag::Blank : tag == kind_);
    }
    Truth of_value(const Value& value) const {
        if (value.error()) return Truth::Error;
        if (kind_ == Tag::Literal) return truth(value.literal());
        return truth(value.type == (kind_ == Tag::Iri ? ValueType::Iri : ValueType::Blank));
    }

    Tag kind_;
    NodePtr operand_;
};

void require(const std::string& name, std::size_t given, std::size_t expected) {
    if (given != expected)
        throw Error("plan: '" + name + "' takes " + std::to_string(expected) + " arguments, not " +
                    std::to_string(given));
}

}  // namespace

NodePtr make_form(const std::string& name, std::vector<NodePtr>& arguments) {
    if (name == "bound") {
        require(name, arguments.size(), 1);
        return std::make_unique<BoundNode>(std::move(arguments[0]));
    }
    if (name == "if") {
        require(name, arguments.size(), 3);
        return std::make_unique<IfNode>(std::move(arguments[0]), std::move(arguments[1]), std::move(arguments[2]));
    }
    if (name == "coalesce") return std::make_unique<CoalesceNode>(std::move(arguments));
    if (name == "in" || name == "notin") {
        if (arguments.empty()) throw Error("plan: '" + name + "' takes at least one argument");
        NodePtr needle = std::move(arguments.front());
        arguments.erase(arguments.begin());
        return std::make_unique<InNode>(name == "notin", std::move(needle), std::move(arguments));
    }
    if (name == "isiri" || name == "isblank" || name == "isliteral") {
        require(name, arguments.size(), 1);
        return std::make_unique<KindNode>(name, std::move(arguments[0]));
    }
    if (name == "sameterm") {
        require(name, arguments.size(), 2);
        return std::make_unique<SameTermNode>(std::move(arguments[0]), std::move(arguments[1]));
    }
    return nullptr;
}

}  // namespace penstock::expr
