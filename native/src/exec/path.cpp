// The operator over property paths: each distinct start is followed once per morsel, from the bound end.
#include "exec/path.hpp"

#include <algorithm>
#include <numeric>

#include "exec/compiler.hpp"
#include "exec/pattern.hpp"

namespace penstock::exec {

namespace {

class Path final : public PatternOperator {
public:
    Path(OperatorPtr in, const TermRef& s, const TermRef& o, int graph_slot, const Spec& path, const Spec& dataset,
         PathEvaluator::Ends terms)
        : PatternOperator(std::move(in), s, nullptr, o, graph_slot),
          named_(graph_slot >= 0),
          path_(path),
          dataset_(dataset, graph_slot >= 0),
          evaluator_(dataset_),
          terms_(terms) {}

private:
    using Rows = std::span<const std::uint32_t>;

    void begin() override {
        names_.clear();
        if (named_) dataset_.graph_names(*run_, names_);
    }
    void finish() override {
        evaluator_.release(*run_);
        keys_.release(run_->budget());
        charge_.release(run_->budget());
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        start_input(rows);
        bool more = partition([this](Rows part, TermId, TermId graph) {
            if (!named_) return match(part, 0);
            if (graph != 0) return !std::binary_search(names_.begin(), names_.end(), graph) || match(part, graph);
            for (TermId name : names_)
                if (!match(part, name)) return false;
            return true;
        });
        return more && finish_input();
    }

    bool match(Rows rows, TermId graph) {
        evaluator_.begin(*run_, graph);
        if (s_.free() && o_.free()) return match_free(rows, graph);
        bool out = s_.constant != 0 || (s_.column >= 0 && o_.constant == 0);
        number_keys(out ? s_ : o_, rows);
        PathEvaluator::Ends ends = out ? terms_ : PathEvaluator::Ends{terms_.far_term, terms_.near_term};
        evaluator_.step(path_, keys_.column(0), out ? Dir::Out : Dir::In, ends, matches_);
        charge_.set(run_->budget(), matches_.rows.capacity() * (sizeof(TermId) + sizeof(std::uint32_t)) * 2);
        sort_by_start(keys_.size());
        return emit_matches(rows, out, graph);
    }

    /// Numbers the distinct values of a bound end in key_of_row_ and keys_.
    void number_keys(const End& end, Rows rows) {
        cells_.clear();
        for (std::uint32_t row : rows) cells_.push_back(cell(end, row));
        key_of_row_.resize(rows.size());
        keys_.reset(1);
        const TermId* column = cells_.data();
        keys_.assign(std::span(&column, 1), rows.size(), key_of_row_.data(), run_->budget());
    }
    TermId cell(const End& end, std::uint32_t row) const {
        return end.column < 0 ? end.constant : input().columns[static_cast<std::size_t>(end.column)][row];
    }

    /// Sorts the values of matches_ by start into sorted_; those of start k are [starts_[k], starts_[k + 1]).
    void sort_by_start(std::size_t keys) {
        starts_.assign(keys + 1, 0);
        for (std::uint32_t row : matches_.rows) ++starts_[row + 1];
        std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
        sorted_.resize(matches_.values.size());
        std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
        for (std::size_t i = 0; i < matches_.rows.size(); ++i) sorted_[next[matches_.rows[i]]++] = matches_.values[i];
    }

    bool emit_matches(Rows rows, bool out, TermId graph) {
        const End& other = out ? o_ : s_;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            std::span<const TermId> ends(sorted_.data() + starts_[key_of_row_[i]],
                                         sorted_.data() + starts_[key_of_row_[i] + 1]);
            MatchBatch batch;
            batch.g = graph;
            std::size_t matches = ends.size();
            if (other.free())
                (out ? batch.o : batch.s) = ends.data();
            else
                matches = static_cast<std::size_t>(std::count(ends.begin(), ends.end(), cell(other, rows[i])));
            if (!emit_product(rows.subspan(i, 1), matches, batch)) return false;
        }
        return true;
    }

    bool match_free(Rows rows, TermId graph) {
        std::vector<TermId> starts;
        evaluator_.starts(path_, starts);
        for (std::size_t from = 0; from < starts.size(); from += kMorsel) {
            auto part = std::span<const TermId>(starts).subspan(from, std::min(kMorsel, starts.size() - from));
            evaluator_.step(path_, part, Dir::Out, {true, false}, matches_);  // they are nodes of the graph
            cells_.resize(matches_.rows.size());
            for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i] = part[matches_.rows[i]];
            MatchBatch batch;
            batch.s = cells_.data();
            batch.o = matches_.values.data();
            batch.g = graph;
            if (!emit_product(rows, cells_.size(), batch)) return false;
        }
        return true;
    }

    bool named_;
    PathExpression path_;
    Dataset dataset_;
    PathEvaluator evaluator_;
    PathEvaluator::Ends terms_;  // near = s
    std::vector<TermId> names_;
    KeyTable keys_;
    std::vector<std::uint32_t> key_of_row_;
    std::vector<std::size_t> starts_;
    Column cells_, sorted_;
    Matches matches_;
    Charge charge_;
};

}  // namespace
OperatorPtr make_path(const Spec& spec, Compiler& compiler) {
    TermRef s = compiler.term(spec.at("s")), o = compiler.term(spec.at("o"));
    // A template's parameters are columns of the seed: they represent terms.
    auto is_term = [&](const TermRef& ref) { return !ref.variable || compiler.seed().index_of(ref.slot) >= 0; };
    PathEvaluator::Ends terms{is_term(s), is_term(o)};
    const Spec* nodes_only = spec.find("nodes_only");
    if (nodes_only != nullptr && nodes_only->as_bool())
        terms = {false, false};
    else if (!terms.near_term && !terms.far_term)
        terms = {true, true};
    return std::make_unique<Path>(compiler.child(spec, "in"), s, o, compiler.slot_at(spec, "graph"), spec.at("path"),
                                  spec.at("dataset"), terms);
}

}  // namespace penstock::exec
