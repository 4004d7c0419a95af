// Stand-ins for terms and expressions until those parts land. Numbers are compared as ids.
#pragma once

#include "expr/expression.hpp"

namespace penstock {

struct Dictionary::Impl {};
Dictionary::Dictionary() = default;
Dictionary::~Dictionary() = default;
struct LocalTerms::Impl {
    std::uint64_t blanks = 0;
};
LocalTerms::LocalTerms(const Dictionary&) : impl_(std::make_unique<Impl>()) {}
LocalTerms::~LocalTerms() = default;
TermId LocalTerms::fresh_blank() { return make_id(Tag::Local, ++impl_->blanks); }
TermView LocalTerms::view(TermId, std::string&) const { return {Kind::Blank, "", "", ""}; }

namespace fake {

struct Fake final : Expression {
    explicit Fake(const Spec& given) : spec(given) {}
    static TermId eval(const Spec& e, const Table& rows, std::size_t i, ExprContext& context) {
        if (const Spec* v = e.find("var")) {
            const Column* column = rows.find(static_cast<Slot>(v->as_int()));
            return column == nullptr ? 0 : (*column)[i];
        }
        if (const Spec* v = e.find("id")) return v->as_int();
        if (const Spec* number = e.find("exists")) {
            Table one;
            one.slots = rows.slots;
            one.rows = 1;
            for (const Column& c : rows.columns) one.columns.push_back({c[i]});
            std::vector<std::uint8_t> found;
            context.exists(number->as_int(), one, found);
            return (found[0] != 0) != e.at("not").as_bool() ? 2 : 1;
        }
        const std::string& name = e.at("call").as_string();
        auto arg = [&](std::size_t k) { return eval(e.at("args").as_list()[k], rows, i, context); };
        if (name == "bound") return arg(0) != 0 ? 2 : 1;
        if (name == "not") return arg(0) == 0 ? 0 : arg(0) == 2 ? 1 : 2;
        TermId a = arg(0), b = arg(1);
        if (a == 0 || b == 0) return 0;
        if (name == "and") return a == 2 && b == 2 ? 2 : 1;
        if (name == "=") return a == b ? 2 : 1;
        if (name == "<") return a < b ? 2 : 1;
        if (name == "+") return a + b;
        throw Error("fake expression: " + name);
    }
    void evaluate(const Table& rows, ExprContext& context, Column& out) const override {
        out.resize(rows.rows);
        for (std::size_t i = 0; i < rows.rows; ++i) out[i] = eval(spec, rows, i, context);
    }
    void test(const Table& rows, ExprContext& context, std::vector<std::uint8_t>& keep) const override {
        keep.resize(rows.rows);
        for (std::size_t i = 0; i < rows.rows; ++i) keep[i] = eval(spec, rows, i, context) == 2;
    }
    Spec spec;
};

/// count and count_star only.
struct FakeCount final : Aggregate {
    explicit FakeCount(const Spec& spec) : star(spec.at("agg").as_string() == "count_star") {
        if (!star) expression = Expression::compile(spec.at("expr"));
    }
    void reset(std::size_t groups) override { counts.assign(groups, 0); }
    void grow(std::size_t groups) override { counts.resize(groups, 0); }
    void add(const Table& rows, std::span<const std::uint32_t> group_of, std::span<const Slot>,
             ExprContext& context) override {
        Column values(rows.rows, 1);
        if (!star) expression->evaluate(rows, context, values);
        for (std::size_t i = 0; i < rows.rows; ++i) counts[group_of[i]] += values[i] != 0;
    }
    void finish(ExprContext&, Column& out) override { out.assign(counts.begin(), counts.end()); }
    bool star;
    std::unique_ptr<Expression> expression;
    std::vector<std::uint64_t> counts;
};

}  // namespace fake

std::unique_ptr<Expression> Expression::compile(const Spec& spec) { return std::make_unique<fake::Fake>(spec); }
std::unique_ptr<Aggregate> Aggregate::compile(const Spec& spec) { return std::make_unique<fake::FakeCount>(spec); }
int order_compare(TermId a, TermId b, const LocalTerms&) { return a < b ? -1 : a > b; }

}  // namespace penstock
