// DISTINCT and REDUCED.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "exec/collected.hpp"
#include "exec/compiler.hpp"
#include "exec/id_bitmap.hpp"
#include "exec/kernels.hpp"
#include "exec/key_counts.hpp"
#include "exec/key_table.hpp"
#include "exec/maintained_input.hpp"
#include "exec/output_change.hpp"

namespace penstock::exec {

namespace {

/// First occurrences, in the input's order; after an update, in the order of their first occurrence in any run.
class Distinct final : public Operator, public ChangeGiver, private Sink {
public:
    Distinct(const Spec& spec, Compiler& compiler) : Distinct(spec, compiler, compiler.profile_ids().size()) {}

    bool give_change(OutputChange& change) override {
        for (const std::size_t column : computed_) change.computed.push_back(schema_.slots[column]);
        if (!correlated_) change_ = &change;
        return !correlated_;
    }

private:
    Distinct(const Spec& spec, Compiler& compiler, std::size_t first)
        : in_(compiler.child(spec, "in")),
          input_(static_cast<std::uint32_t>(spec.at("id").as_int()), spec.at("in"), in_->schema().slots, first,
                 compiler, spec.find("once") == nullptr) {
        correlated_ = in_->correlated();
        schema_ = in_->schema();
        schema_.shape(buffer_);
        for (std::size_t c = 0; c < schema_.slots.size(); ++c)
            if (input_.computes(schema_.slots[c])) computed_.push_back(c);
    }

    void begin() {
        const bool retained = std::exchange(retained_, false);
        updates_ = input_.can_update(*run_) && retained;
        if (updates_ && exceeds_budget()) {
            updates_ = false;
            input_.fall_back(Outcome::Budget);
        }
        tracks_ = updates_ || input_.wants_state(*run_);
        state_.emplace();
        if (updates_) return state_->set(run_->budget(), state_bytes());
        if (retained) seen_.emplace();
        start_over();
    }
    void start_over() {
        seen_->reset(schema_.slots.size());
        ids_seen_.reset();
        is_first_ = true;
        lasting_ = complete_ = true;
        counts_.begin();
    }

    void produce(Run& run, Sink& out) override {
        run_ = &run;
        out_ = &out;
        begin();
        feed();
        finish();
        if (!correlated_) input_.report(run, retained_ ? state_bytes() : 0);
    }

    void feed() {
        gives_ = change_ != nullptr && updates_ && change_->requested;
        if (change_ != nullptr) change_->can_follow = false;
        if (!updates_) {
            report_change();
            return in_->run(*run_, *this);
        }
        counts_.begin_update(gives_);
        input_.run_changes(*run_, *this, sign_);
        if (lasting_) return gives_ ? push_change() : push_rows_held();
        updates_ = tracks_ = gives_ = false;  // terms of this run only: a new evaluation, without state
        input_.fall_back(Outcome::RunTerms);
        report_change();
        seen_.emplace();
        state_->release(run_->budget());
        start_over();
        in_->run(*run_, *this);
    }

    void finish() {
        if (!updates_) input_.evaluated(*run_);
        const Outcome obstacle = !complete_                            ? Outcome::Stopped
                                 : !lasting_                           ? Outcome::RunTerms
                                 : 2 * counts_.empty() > seen_->size() ? Outcome::Emptied
                                 : tracks_ && exceeds_budget()         ? Outcome::Budget
                                                                       : Outcome::Updated;
        if (tracks_ && obstacle == Outcome::Updated) {
            input_.keep(*run_);
            retained_ = true;
            if (change_ != nullptr) change_->can_follow = true;
            return;
        }
        if (tracks_) input_.drop(obstacle);
        if (ids_seen_) ids_seen_->release(run_->budget());
        ids_seen_.reset();
        if (updates_) {
            seen_.emplace();
            state_->release(run_->budget());
        } else {
            seen_->release(run_->budget());
        }
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        const bool begins_large = std::exchange(is_first_, false) && rows.rows >= kMany;
        if (begins_large && rows.columns.size() == 1 && !tracks_) ids_seen_.emplace();
        if (ids_seen_) return consume_ids(rows);
        auto next = static_cast<std::uint32_t>(seen_->size());
        keys_.clear();
        for (const Column& column : rows.columns) keys_.push_back(column.data());
        ids_.resize(rows.rows);
        seen_->assign(keys_, rows.rows, ids_.data(), run_->budget());
        if (tracks_) track(rows);
        if (updates_) return true;
        keep_.resize(rows.rows);
        for (std::size_t i = 0; i < rows.rows; ++i) {
            keep_[i] = ids_[i] == next;
            next += keep_[i];
        }
        compact(rows, keep_);
        complete_ = rows.rows == 0 || out_->push(rows);
        return complete_;
    }

    /// As consume(), for a column of ids that are seen in a bitmap.
    bool consume_ids(Table& rows) {
        keep_.resize(rows.rows);
        ids_seen_->insert(std::span(rows.columns[0]).first(rows.rows), keep_.data(), run_->budget());
        compact(rows, keep_);
        if (ids_seen_->is_sparse()) {
            const std::vector<TermId> ids = ids_seen_->ids();
            ids_seen_->release(run_->budget());
            ids_seen_.reset();
            ids_.resize(ids.size());
            const TermId* const column = ids.data();
            seen_->assign({&column, 1}, ids.size(), ids_.data(), run_->budget());
        }
        complete_ = rows.rows == 0 || out_->push(rows);
        return complete_;
    }

    void track(const Table& rows) {
        for (const std::size_t column : computed_)
            for (const TermId id : std::span(rows.columns[column]).first(rows.rows)) lasting_ &= is_lasting(id);
        counts_.add(ids_, seen_->size(), sign_);
    }

    void report_change() {
        if (change_ == nullptr) return;
        change_->given = gives_;
        change_->tracks = tracks_;
        change_->outcome = input_.outcome();
    }
    /// Pushes the rows that leave the output, and then those that enter it.
    void push_change() {
        report_change();
        for (const int sign : {-1, 1}) {
            change_->sign = sign;
            full_.clear();
            const std::vector<std::uint32_t>& changed = counts_.changed();
            for (std::size_t i = 0; i < changed.size(); ++i) {
                const int difference = (counts_.rows(changed[i]) != 0 ? 1 : 0) - (counts_.before(i) != 0 ? 1 : 0);
                if (difference == sign) full_.push_back(changed[i]);
            }
            push_full();
        }
    }

    void push_rows_held() {
        counts_.occurring(full_);
        report_change();
        push_full();
    }
    void push_full() { complete_ = complete_ && push_keys(*seen_, full_, buffer_, *run_, *out_); }

    /// Retained state and its growth must leave room for the rest of an evaluation.
    bool exceeds_budget() const {
        const std::size_t left = run_->budget().bytes_left();
        return left != 0 && 4 * state_bytes() > left;
    }
    std::size_t state_bytes() const {
        return seen_->size() * (schema_.slots.size() + 3) * sizeof(TermId) + counts_.bytes();
    }

    OperatorPtr in_;
    Run* run_ = nullptr;
    Sink* out_ = nullptr;
    std::optional<KeyTable> seen_{std::in_place};
    static constexpr std::size_t kMany = 256;     // a first table of fewer rows is of a small input
    std::optional<IdBitmap> ids_seen_;            // in place of seen_
    bool is_first_ = true;                        // no table has been consumed
    std::optional<Charge> state_{std::in_place};  // of a state of an earlier run
    std::vector<const TermId*> keys_;
    std::vector<std::uint32_t> ids_;
    std::vector<std::uint8_t> keep_;

    // State from run to run (ADR 78).
    MaintainedInput input_;
    std::vector<std::size_t> computed_;  // columns that expressions compute
    bool retained_ = false, tracks_ = false, updates_ = false;
    bool lasting_ = true, complete_ = true;
    int sign_ = 1;
    OutputChange* change_ = nullptr;   // of the reader, if there is one that wants changes
    bool gives_ = false;               // its rows are the change of this run
    KeyCounts counts_;                 // of input rows, by distinct row
    std::vector<std::uint32_t> full_;  // rows that remain
    Table buffer_;
};

/// REDUCED may drop duplicates; retaining them costs nothing.
class Reduced final : public Unary {
public:
    explicit Reduced(OperatorPtr in) : Unary(std::move(in)) { schema_ = in_->schema(); }

private:
    bool consume(Table& rows) override { return out_->push(rows); }
};

}  // namespace

OperatorPtr make_distinct(const Spec& spec, Compiler& compiler) { return std::make_unique<Distinct>(spec, compiler); }
OperatorPtr make_reduced(const Spec& spec, Compiler& compiler) {
    return std::make_unique<Reduced>(compiler.child(spec, "in"));
}

}  // namespace penstock::exec
