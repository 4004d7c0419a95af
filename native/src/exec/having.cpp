// HAVING: a filter over an operator that can give the change of its output.
#include <algorithm>
#include <optional>
#include <utility>

#include "exec/collected.hpp"
#include "exec/compiler.hpp"
#include "exec/kernels.hpp"
#include "exec/key_counts.hpp"
#include "exec/key_table.hpp"
#include "exec/maintained_input.hpp"
#include "exec/output_change.hpp"
#include "expr/removable.hpp"
#include "expr/steady.hpp"

namespace penstock::exec {

namespace {

/// Passes on the rows that meet a condition. If the input gives the change of its output, and the reader does not want
/// it, the rows that meet the condition are kept, and only changed rows are tested (ADR 110).
class Having final : public Operator, public ChangeGiver, private Sink {
public:
    Having(OperatorPtr in, const Spec& spec, Compiler& compiler)
        : in_(std::move(in)),
          input_(static_cast<std::uint32_t>(spec.at("id").as_int()), spec.at("in"), in_->schema().slots,
                 compiler.profile_ids().size(), compiler, false) {
        correlated_ = in_->correlated();
        schema_ = in_->schema();
        condition_ = compiler.expression(spec.at("expr"), schema_);
        steady_ = expr::is_steady(spec.at("expr"));
        schema_.shape(buffer_);
    }
    /// The reader then gets the change of this operator's output, and no rows are kept here.
    bool give_change(OutputChange& change) override {
        asked_ = true;
        return steady_ && give_change_of(*in_, change);
    }

private:
    void produce(Run& run, Sink& out) override {
        run_ = &run;
        out_ = &out;
        begin();
        const std::uint64_t before = pushed();
        in_->run(run, *this);
        if (!reads_change_) return;
        finish();
        if (updates_) input_.updated_from(pushed() - before);
        input_.report(run, retained_ ? state_bytes() : 0);
    }

    void begin() {
        if (!std::exchange(asked_, true) && steady_ && give_change_of(*in_, change_)) {
            reads_change_ = true;
            for (std::size_t c = 0; c < schema_.slots.size(); ++c)
                if (std::ranges::count(change_.computed, schema_.slots[c]) != 0) computed_.push_back(c);
        }
        open_ = updates_ = tracks_ = false;
        if (!reads_change_) return;
        state_.emplace();
        input_.begin();
        change_.requested = std::exchange(retained_, false) && !exceeds_budget();
    }

    /// Called before the first row, or at the end: the input has decided whether it gives its change.
    void open() {
        if (std::exchange(open_, true)) return;
        updates_ = change_.given;
        tracks_ = updates_ || (change_.tracks && rest_ == 0);
        if (rest_ != 0) --rest_;
        lasting_ = true;
        if (updates_) return state_->set(run_->budget(), state_bytes());
        input_.fall_back(change_.outcome == Outcome::Updated ? Outcome::NoState : change_.outcome);
        passed_.emplace();
        passed_->reset(schema_.slots.size());
        counts_.begin();
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        if (reads_change_) open();
        condition_->test(rows, run_->expressions, keep_);
        compact(rows, keep_);
        if (rows.rows == 0) return true;
        if (tracks_) hold(rows);
        return updates_ || out_->push(rows);
    }

    /// Adds the rows to those that are kept, or removes them.
    void hold(const Table& rows) {
        for (const std::size_t column : computed_)
            for (const TermId id : std::span(rows.columns[column]).first(rows.rows)) lasting_ &= is_lasting(id);
        if (!updates_ && (!lasting_ || exceeds_budget())) {
            give_up();
            return;
        }
        keys_.clear();
        for (const Column& column : rows.columns) keys_.push_back(column.data());
        ids_.resize(rows.rows);
        passed_->assign(keys_, rows.rows, ids_.data(), run_->budget());
        counts_.add(ids_, passed_->size(), change_.given ? change_.sign : 1);
    }

    void finish() {
        open();
        if (updates_) push_passed();
        change_.requested = false;
        const bool many_left = passed_->size() > kMorsel && 2 * counts_.empty() > passed_->size();
        if (tracks_ && change_.can_follow && lasting_ && !many_left && !exceeds_budget()) {
            retained_ = true;
            return;
        }
        if (tracks_) give_up();
    }

    /// The next run has no rows of this one.
    void give_up() {
        if (!lasting_ || exceeds_budget()) rest_ = kRest;
        tracks_ = false;
        if (updates_) {
            passed_.emplace();
            state_->release(run_->budget());
        } else {
            passed_->release(run_->budget());
        }
        counts_.begin();
    }

    void push_passed() {
        occurring_.clear();
        for (std::uint32_t row = 0; row < passed_->size(); ++row)
            occurring_.insert(occurring_.end(), static_cast<std::size_t>(std::max<std::int64_t>(counts_.rows(row), 0)),
                              row);
        push_keys(*passed_, occurring_, buffer_, *run_, *out_);
    }

    /// The rows that are kept and their growth must leave room for the rest of an evaluation.
    bool exceeds_budget() const {
        const std::size_t left = run_->budget().bytes_left();
        return left != 0 && 4 * state_bytes() > left;
    }
    std::size_t state_bytes() const {
        return passed_->size() * (schema_.slots.size() + 3) * sizeof(TermId) + counts_.bytes();
    }

    OperatorPtr in_;
    MaintainedInput input_;  // for reports
    std::unique_ptr<Expression> condition_;
    bool steady_;
    Run* run_ = nullptr;
    Sink* out_ = nullptr;
    std::vector<std::uint8_t> keep_;

    // Rows that are kept from run to run.
    static constexpr std::uint32_t kRest = 16;  // runs without kept rows after they could not be kept
    OutputChange change_;
    bool asked_ = false;         // the change of the input, by this operator or by its reader
    bool reads_change_ = false;  // this operator reads it
    bool open_ = false, updates_ = false, tracks_ = false, retained_ = false;
    bool lasting_ = true;                // the rows have the same ids in every run
    std::vector<std::size_t> computed_;  // columns that expressions compute
    std::optional<KeyTable> passed_{std::in_place};
    KeyCounts counts_;
    std::optional<Charge> state_{std::in_place};  // of rows of an earlier run
    std::vector<const TermId*> keys_;
    std::vector<std::uint32_t> ids_, occurring_;
    std::uint32_t rest_ = 0;
    Table buffer_;
};

}  // namespace

OperatorPtr make_having(OperatorPtr in, const Spec& spec, Compiler& compiler) {
    return std::make_unique<Having>(std::move(in), spec, compiler);
}

}  // namespace penstock::exec
