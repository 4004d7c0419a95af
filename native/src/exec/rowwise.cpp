// Operators that process each row by itself: filter, extend, project.
#include <algorithm>
#include <utility>

#include "exec/compiler.hpp"
#include "exec/kernels.hpp"
#include "exec/output_change.hpp"
#include "expr/steady.hpp"

namespace penstock::exec {

namespace {

class Filter final : public Unary {
public:
    Filter(OperatorPtr in, const Spec& spec, Compiler& compiler) : Unary(std::move(in)) {
        schema_ = in_->schema();
        condition_ = compiler.expression(spec.at("expr"), schema_);
    }

private:
    bool consume(Table& rows) override {
        run_->work(rows.rows);
        condition_->test(rows, run_->expressions, keep_);
        compact(rows, keep_);
        return rows.rows == 0 || out_->push(rows);
    }
    std::unique_ptr<Expression> condition_;
    std::vector<std::uint8_t> keep_;
};

/// BIND: adds one column. An error leaves the cell unbound.
class Extend final : public Unary, public ChangeGiver {
public:
    Extend(const Spec& spec, Compiler& compiler) : Unary(compiler.child(spec, "in")) {
        schema_ = in_->schema();
        Slot slot = compiler.slot(spec.at("slot"));
        if (schema_.index_of(slot) >= 0) throw Error("plan: 'extend' binds a slot that its input has");
        value_ = compiler.expression(spec.at("expr"), schema_);
        schema_.add(slot, true);
        schema_.shape(table_);
        steady_ = expr::is_steady(spec.at("expr"));
    }
    bool give_change(OutputChange& change) override {
        change.computed.push_back(schema_.slots.back());
        return steady_ && give_change_of(*in_, change);
    }

private:
    bool consume(Table& rows) override {
        run_->work(rows.rows);
        value_->evaluate(rows, run_->expressions, table_.columns.back());
        run_->expressions.terms.settle(table_.columns.back().data(), rows.rows);
        for (std::size_t c = 0; c < rows.columns.size(); ++c) std::swap(table_.columns[c], rows.columns[c]);
        table_.rows = rows.rows;
        return out_->push(table_);
    }
    std::unique_ptr<Expression> value_;
    bool steady_;
    Table table_;
};

class Project final : public Unary, public ChangeGiver {
public:
    Project(OperatorPtr in, const std::vector<Slot>& slots) : Unary(std::move(in)) {
        const Schema& from = in_->schema();
        for (Slot slot : slots) {
            if (schema_.index_of(slot) >= 0) throw Error("plan: 'project' names a slot twice");
            int column = from.index_of(slot);
            columns_.push_back(column);
            schema_.add(slot, column < 0 || from.nullable[static_cast<std::size_t>(column)] != 0);
        }
        schema_.shape(table_);
    }
    bool give_change(OutputChange& change) override { return give_change_of(*in_, change); }

private:
    bool consume(Table& rows) override {
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (columns_[c] < 0)
                table_.columns[c].assign(rows.rows, kUnbound);
            else
                std::swap(table_.columns[c], rows.columns[static_cast<std::size_t>(columns_[c])]);
        }
        table_.rows = rows.rows;
        return out_->push(table_);
    }
    std::vector<int> columns_;
    Table table_;
};

}  // namespace

OperatorPtr make_filter(const Spec& spec, Compiler& compiler) {
    OperatorPtr in = compiler.child(spec, "in");
    if (dynamic_cast<ChangeGiver*>(in.get()) != nullptr) return make_having(std::move(in), spec, compiler);
    return std::make_unique<Filter>(std::move(in), spec, compiler);
}
OperatorPtr make_extend(const Spec& spec, Compiler& compiler) { return std::make_unique<Extend>(spec, compiler); }
OperatorPtr make_project(const Spec& spec, Compiler& compiler) {
    OperatorPtr in = compiler.child(spec, "in");
    const Spec* without = spec.find("without");
    if (without == nullptr) return std::make_unique<Project>(std::move(in), compiler.slot_list(spec.at("slots")));
    const std::vector<Slot> removed = compiler.slot_list(*without);
    std::vector<Slot> slots;
    for (const Slot slot : in->schema().slots)
        if (std::find(removed.begin(), removed.end(), slot) == removed.end()) slots.push_back(slot);
    return std::make_unique<Project>(std::move(in), slots);
}

}  // namespace penstock::exec
