#include "exec/answer_changes.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "exec/collected.hpp"

namespace penstock::exec {

std::uint64_t AnswerChanges::next_id() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;  // unique only; orders nothing
}

AnswerChanges::AnswerChanges(const Spec& root, Operator& op, Compiler& compiler)
    : root_(op),
      input_(MaintainedFigure::kAnswer, root, op.schema().slots, 0, compiler),
      given_(give_change_of(op, output_)) {
    op.schema().shape(buffer_);
}

void AnswerChanges::run(Run& run, AnswerChange& change, Sink& out) {
    const std::uint64_t last = std::exchange(id_, 0);
    const bool held = last == change.from && last != 0;
    begin(run, out);
    if (given_) return run_giver(run, held, change, out);
    if (!held && last != 0) input_.fall_back(Outcome::NotHeld);
    bool keeps = true;
    if (held && input_.can_update(run)) {
        input_.run_changes(run, *this, sign_);
        push_change(run, change, out);
    } else {
        keeps = input_.wants_state(run);
        root_.run(run, out);
        input_.evaluated(run);
    }
    if (keeps) {
        input_.keep(run);
        change.id = id_ = next_id();
    }
    input_.report(run, 0);
}

/// The root decides whether its rows are its output or the change of it, and says so before the first one.
void AnswerChanges::run_giver(Run& run, bool held, AnswerChange& change, Sink& out) {
    output_.requested = held;
    const std::uint64_t before = pushed();
    root_.run(run, *this);
    output_.requested = false;
    if (output_.given) {
        input_.updated_from(pushed() - before);
        push_change(run, change, out);
    } else {
        input_.fall_back(output_.outcome == Outcome::Updated ? Outcome::NotHeld : output_.outcome);
    }
    if (output_.can_follow) change.id = id_ = next_id();
    input_.report(run, 0);
}

void AnswerChanges::begin(Run& run, Sink& out) {
    run_ = &run;
    out_ = &out;
    input_.begin();
    changed_.reset(buffer_.columns.size());
    net_.clear();
}

bool AnswerChanges::consume(Table& rows) {
    if (given_ && !output_.given) return rows.rows == 0 || out_->push(rows);
    run_->work(rows.rows);
    keys_.clear();
    for (const Column& column : rows.columns) keys_.push_back(column.data());
    ids_.resize(rows.rows);
    changed_.assign(keys_, rows.rows, ids_.data(), run_->budget());
    net_.resize(changed_.size());
    const int sign = given_ ? output_.sign : sign_;
    for (std::size_t i = 0; i < rows.rows; ++i) net_[ids_[i]] += sign;
    return true;
}

void AnswerChanges::push_change(Run& run, AnswerChange& change, Sink& out) {
    change.added = push_net(run, out, 1);
    push_net(run, out, -1);
    changed_.release(run.budget());
    change.known = true;
}

/// Pushes the rows that were added (1) or removed (-1) on balance. Returns their number.
std::size_t AnswerChanges::push_net(Run& run, Sink& out, int sign) {
    taken_.clear();
    for (std::uint32_t row = 0; row < net_.size(); ++row)
        for (std::int64_t n = net_[row] * sign; n > 0; --n) taken_.push_back(row);
    push_keys(changed_, taken_, buffer_, run, out);
    return taken_.size();
}

}  // namespace penstock::exec
