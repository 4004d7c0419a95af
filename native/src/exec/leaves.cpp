// Operators without input: the seed, outer rows, constant tables.
#include <algorithm>
#include <numeric>

#include "exec/collected.hpp"
#include "exec/compiler.hpp"
#include "exec/seed.hpp"

namespace penstock::exec {

namespace {

/// The rows of the enclosing operator, numbered.
class Outer final : public Operator {
public:
    explicit Outer(const OuterRows& outer) : outer_(outer) {
        schema_ = outer.schema;
        correlated_ = true;
        schema_.shape(buffer_);
    }

private:
    void produce(Run& run, Sink& out) override {
        const Table& rows = *outer_.rows;
        for (std::size_t from = 0; from < rows.rows; from += kMorsel) {
            std::size_t n = std::min(kMorsel, rows.rows - from);
            for (std::size_t c = 0; c < rows.columns.size(); ++c)
                buffer_.columns[c].assign(rows.columns[c].begin() + static_cast<std::ptrdiff_t>(from),
                                          rows.columns[c].begin() + static_cast<std::ptrdiff_t>(from + n));
            Column& numbers = buffer_.columns.back();
            numbers.resize(n);
            std::iota(numbers.begin(), numbers.end(), outer_.first_row + from);
            buffer_.rows = n;
            run.work(n);
            if (!out.push(buffer_)) return;
        }
    }

    const OuterRows& outer_;
    Table buffer_;
};

/// VALUES: a constant table.
class Values final : public Operator {
public:
    Values(const Spec& spec, Compiler& compiler) {
        std::vector<Slot> slots = compiler.slot_list(spec.at("slots"));
        const Spec::List& rows = spec.at("rows").as_list();
        table_.slots = slots;
        table_.rows = rows.size();
        table_.columns.resize(slots.size());
        for (Column& column : table_.columns) column.reserve(rows.size());
        for (const Spec& row : rows) {
            const Spec::List& cells = row.as_list();
            if (cells.size() != slots.size()) throw Error("plan: a row of values has the wrong number of cells");
            for (std::size_t c = 0; c < cells.size(); ++c) table_.columns[c].push_back(cells[c].as_int());
        }
        for (std::size_t c = 0; c < slots.size(); ++c) {
            const Column& column = table_.columns[c];
            schema_.add(slots[c], std::find(column.begin(), column.end(), kUnbound) != column.end());
        }
    }

private:
    void produce(Run& run, Sink& out) override { push_all(table_, buffer_, run, out); }
    Table table_, buffer_;
};

class Empty final : public Operator {
public:
    explicit Empty(const std::vector<Slot>& slots) {
        for (Slot slot : slots) schema_.add(slot, true);
    }

private:
    void produce(Run&, Sink&) override {}
};

}  // namespace

OperatorPtr make_seed(const Spec&, Compiler& compiler) { return std::make_unique<Seed>(compiler.seed()); }

OperatorPtr make_outer(const Spec&, Compiler& compiler) {
    if (compiler.outer() == nullptr) throw Error("plan: 'outer' stands outside of a sub-plan");
    return std::make_unique<Outer>(*compiler.outer());
}

OperatorPtr make_values(const Spec& spec, Compiler& compiler) { return std::make_unique<Values>(spec, compiler); }

OperatorPtr make_empty(const Spec& spec, Compiler& compiler) {
    return std::make_unique<Empty>(compiler.slot_list(spec.at("slots")));
}

}  // namespace penstock::exec
