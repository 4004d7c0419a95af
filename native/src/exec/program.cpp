#include "exec/program.hpp"

#include <algorithm>
#include <optional>

namespace penstock::exec {

namespace {

/// Marks the outer rows that a sub-plan's rows belong to. Stops the sub-plan once all are marked.
class Marks final : public Sink {
public:
    Marks(std::size_t column, std::uint64_t first_row, std::vector<std::uint8_t>& found)
        : column_(column), first_row_(first_row), missing_(found.size()), found_(found) {}
    bool consume(Table& rows) override {
        for (TermId number : rows.columns[column_]) {
            std::uint8_t& flag = found_[number - first_row_];
            missing_ -= flag == 0;
            flag = 1;
        }
        return missing_ != 0;
    }

private:
    std::size_t column_;
    std::uint64_t first_row_;
    std::size_t missing_;
    std::vector<std::uint8_t>& found_;
};

std::int64_t latest(const RunInput& input, TermId s, TermId p, TermId o) {
    Label label = input.labels->find(0, p);
    std::int64_t time = kNever;
    if (label == 0) return time;
    for (const Source* source : input.sources) time = std::max(time, source->latest(s, label, o));
    return time;
}

/// Resets the callbacks of a context at the end of a run, because they hold pointers into it.
class ContextCallbacks {
public:
    explicit ContextCallbacks(ExprContext& context) : context_(context) {}
    ContextCallbacks(const ContextCallbacks&) = delete;
    ContextCallbacks& operator=(const ContextCallbacks&) = delete;
    ~ContextCallbacks() {
        context_.exists = nullptr;
        context_.timestamp = nullptr;
    }

private:
    ExprContext& context_;
};

}  // namespace

Program::Program(const Spec& plan) : compiler_(plan), root_(compiler_.root()) {
    if (plan.find("changes") != nullptr) changes_ = std::make_unique<AnswerChanges>(plan.at("root"), *root_, compiler_);
    sub_plans_ = compiler_.take_sub_plans();
}

void Program::run_root(Run& run, const RunInput& input) {
    if (changes_ && input.change != nullptr) return changes_->run(run, *input.change, answer_);
    if (changes_) changes_->forget();
    root_->run(run, answer_);
}

Answer Program::run(const RunInput& input) {
    if (input.seed->slots != compiler_.seed().slots) throw Error("the seed's columns are not those of the plan");
    bool record = false;
    const bool timed = input.profile != nullptr && input.profile->timed;
    // A timed run must execute the operators, and the memo does not cover look-ups made on nodes.
    const bool reusable = compiler_.follows_from_lookups() && !timed && input.forker == nullptr;
    if (reusable && lookup_memo_.same_seed(*input.seed)) {
        if (lookup_memo_.still_valid(input.sources, input.labels->identity())) {
            input.expressions->budget.check();
            if (input.profile != nullptr) {
                fill(input.profile->rows, produced_);
                input.profile->reused = true;
                input.profile->maintained.clear();
            }
            return unchanged(input);
        }
        record = lookup_memo_.begin();
    }
    std::optional<Profiler> profiler;
    if (timed) profiler.emplace(compiler_.profile_ids().size());
    std::vector<std::uint64_t>& produced = reusable ? produced_ : unmemoized_;
    produced.assign(compiler_.profile_ids().size(), 0);
    Run run(*input.seed, input.sources, *input.labels, *input.expressions, profiler ? &*profiler : nullptr,
            input.forker, ++runs_, produced);
    if (record) run.lookup_memo = &lookup_memo_;
    run.indexed_seed = input.indexed_seed;
    report_.figures.clear();
    report_.totals = input.totals;
    run.report = &report_;
    std::optional<ContextCallbacks> callbacks;
    if (compiler_.has_expressions()) {
        callbacks.emplace(*input.expressions);
        input.expressions->exists = [this, &run](std::size_t number, const Table& rows,
                                                 std::vector<std::uint8_t>& found) {
            exists(run, number, rows, found);
        };
        input.expressions->timestamp = [&input](TermId s, TermId p, TermId o) { return latest(input, s, p, o); };
    }
    run.budget().check();
    answer_.begin(run, root_->schema());
    run_root(run, input);
    for (Operator* correlated : compiler_.correlated()) correlated->release(run);
    if (input.profile != nullptr) {
        fill(input.profile->rows, produced);
        input.profile->reused = false;
        input.profile->maintained = report_.figures;
        if (profiler) fill(input.profile->nanos, profiler->nanos());
        input.profile->timed = false;
    }
    auto answer = std::make_shared<Table>(answer_.take());
    if (record) {
        lookup_memo_.end(answer, input.labels->identity());
        memoized_id_ = 0;
        if (changes_ && input.change != nullptr && !input.change->known) {
            if (input.change->id == 0) input.change->id = AnswerChanges::next_id();
            memoized_id_ = input.change->id;
        }
    }
    return answer;
}

/// The memoized answer. If the caller has this answer and asks for its change, this is no rows.
Answer Program::unchanged(const RunInput& input) {
    if (memoized_id_ == 0 || input.change == nullptr) return lookup_memo_.answer();
    input.change->id = memoized_id_;
    if (input.change->from != memoized_id_) return lookup_memo_.answer();
    input.change->known = true;
    if (no_rows_ == nullptr) {
        no_rows_ = std::make_shared<Table>();
        root_->schema().shape(*no_rows_);
    }
    return no_rows_;
}

void Program::exists(Run& run, std::size_t number, const Table& rows, std::vector<std::uint8_t>& found) {
    found.assign(rows.rows, 0);
    if (rows.rows == 0) return;
    SubPlan& plan = sub_plan(number, rows);
    run.produced.resize(compiler_.profile_ids().size());
    plan.outer->rows = &rows;
    auto column = static_cast<std::size_t>(plan.root->schema().index_of(plan.outer->schema.slots.back()));
    Marks marks(column, plan.outer->first_row, found);
    plan.root->run(run, marks);
}

/// The sub-plan compiled for rows of the given schema. The compiler has prepared it for the rows of the operator that
/// the expression belongs to; for any other schema it is compiled here, once.
SubPlan& Program::sub_plan(std::size_t number, const Table& rows) {
    for (auto& plan : sub_plans_) {
        const std::vector<Slot>& slots = plan->outer->schema.slots;
        if (plan->number == number && std::equal(rows.slots.begin(), rows.slots.end(), slots.begin(), slots.end() - 1))
            return *plan;
    }
    Schema shape;
    for (Slot slot : rows.slots) shape.add(slot, compiler_.seed().index_of(slot) < 0);
    sub_plans_.push_back(compiler_.sub_plan(number, shape));
    return *sub_plans_.back();
}

void Program::fill(std::vector<Profile::Figure>& out, const std::vector<std::uint64_t>& values) const {
    const std::vector<std::uint32_t>& ids = compiler_.profile_ids();
    out.resize(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) out[i] = {ids[i], i < values.size() ? values[i] : 0};
}

}  // namespace penstock::exec
