// UNION: its inputs one after the other, under one schema.
#include <utility>

#include "exec/compiler.hpp"

namespace penstock::exec {

namespace {

class Union final : public Operator, private Sink {
public:
    Union(const Spec& spec, Compiler& compiler) {
        for (const Spec& input : spec.at("inputs").as_list()) inputs_.push_back({compiler.node(input), {}});
        if (inputs_.empty()) throw Error("plan: a union without inputs");
        for (const Input& input : inputs_) {
            correlated_ = correlated_ || input.root->correlated();
            for (Slot slot : input.root->schema().slots)
                if (schema_.index_of(slot) < 0) schema_.add(slot, may_be_unbound(slot));
        }
        for (Input& input : inputs_)
            for (Slot slot : schema_.slots) input.columns.push_back(input.root->schema().index_of(slot));
        schema_.shape(table_);
    }

private:
    struct Input {
        OperatorPtr root;
        std::vector<int> columns;  // of the input, by column of the output; -1 if it has none
    };

    bool may_be_unbound(Slot slot) const {
        for (const Input& input : inputs_) {
            int column = input.root->schema().index_of(slot);
            if (column < 0 || input.root->schema().nullable[static_cast<std::size_t>(column)]) return true;
        }
        return false;
    }

    void produce(Run& run, Sink& out) override {
        out_ = &out;
        more_ = true;
        for (Input& input : inputs_) {
            current_ = &input;
            input.root->run(run, *this);
            if (!more_) return;
        }
    }

    bool consume(Table& rows) override {
        for (std::size_t c = 0; c < current_->columns.size(); ++c) {
            int from = current_->columns[c];
            if (from < 0)
                table_.columns[c].assign(rows.rows, kUnbound);
            else
                std::swap(table_.columns[c], rows.columns[static_cast<std::size_t>(from)]);
        }
        table_.rows = rows.rows;
        return more_ = out_->push(table_);
    }

    std::vector<Input> inputs_;
    const Input* current_ = nullptr;
    Sink* out_ = nullptr;
    bool more_ = true;
    Table table_;
};

}  // namespace

OperatorPtr make_union(const Spec& spec, Compiler& compiler) { return std::make_unique<Union>(spec, compiler); }

}  // namespace penstock::exec
