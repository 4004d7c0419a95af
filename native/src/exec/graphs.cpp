// GRAPH ?g around a pattern that reads no triples: each graph of the dataset is a solution.
#include <algorithm>

#include "exec/compiler.hpp"
#include "exec/pattern.hpp"

namespace penstock::exec {

namespace {

class Graphs final : public PatternOperator {
public:
    Graphs(OperatorPtr in, Slot graph, const Spec& dataset)
        : PatternOperator(std::move(in), {true, graph, 0}, nullptr, {}, -1), dataset_(dataset, true) {}

private:
    void begin() override {
        names_.clear();
        dataset_.graph_names(*run_, names_);
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        start_input(rows);
        MatchBatch batch;
        if (s_.free()) {
            batch.s = names_.data();
            return emit_product(all_rows(), names_.size(), batch) && finish_input();
        }
        const Column& bound = rows.columns[static_cast<std::size_t>(s_.column)];
        found_.clear();
        for (std::uint32_t row : all_rows())
            if (std::binary_search(names_.begin(), names_.end(), bound[row])) found_.push_back(row);
        batch.rows = found_;
        return emit(batch) && finish_input();
    }

    Dataset dataset_;
    std::vector<TermId> names_;
    std::vector<std::uint32_t> found_;
};

}  // namespace

OperatorPtr make_graphs(const Spec& spec, Compiler& compiler) {
    return std::make_unique<Graphs>(compiler.child(spec, "in"), compiler.slot(spec.at("graph")), spec.at("dataset"));
}

}  // namespace penstock::exec
