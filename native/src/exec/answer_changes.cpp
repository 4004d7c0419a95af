#include "exec/answer_changes.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "exec/kernels.hpp"

namespace penstock::exec {

namespace {

std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;  // unique only; orders nothing
}

}  // namespace

AnswerChanges::AnswerChanges(const Spec& root, const Schema& schema, Compiler& compiler)
    : input_(MaintainedFigure::kAnswer, root, schema.slots, 0, compiler) {
    schema.shape(buffer_);
}

bool AnswerChanges::update(Run& run, AnswerChange& change, Sink& out) {
    const std::uint64_t last = std::exchange(id_, 0);
    const bool held = last == change.from && last != 0;
    input_.begin();
    if (!held && last != 0) input_.fall_back(Outcome::NotHeld);
    wants_ = false;
    if (!held || !input_.can_update(run)) {
        wants_ = input_.wants_state(run);
        return false;
    }
    run_ = &run;
    changed_.reset(buffer_.columns.size());
    net_.clear();
    input_.run_changes(run, *this, sign_);
    change.added = push_net(run, out, 1);
    push_net(run, out, -1);
    changed_.release(run.budget());
    change.known = true;
    keep(run, change);
    input_.report(run, 0);
    return true;
}

void AnswerChanges::evaluated(Run& run, AnswerChange& change) {
    input_.evaluated(run);
    if (wants_) keep(run, change);
    input_.report(run, 0);
}

void AnswerChanges::keep(Run& run, AnswerChange& change) {
    input_.keep(run);
    change.id = id_ = next_id();
}

bool AnswerChanges::consume(Table& rows) {
    run_->work(rows.rows);
    keys_.clear();
    for (const Column& column : rows.columns) keys_.push_back(column.data());
    ids_.resize(rows.rows);
    changed_.assign(keys_, rows.rows, ids_.data(), run_->budget());
    net_.resize(changed_.size());
    for (std::size_t i = 0; i < rows.rows; ++i) net_[ids_[i]] += sign_;
    return true;
}

/// Pushes the rows that were added (1) or removed (-1) on balance. Returns their number.
std::size_t AnswerChanges::push_net(Run& run, Sink& out, int sign) {
    taken_.clear();
    for (std::uint32_t row = 0; row < net_.size(); ++row)
        for (std::int64_t n = net_[row] * sign; n > 0; --n) taken_.push_back(row);
    for (std::size_t first = 0; first < taken_.size(); first += kMorsel) {
        const auto some = std::span(taken_).subspan(first, std::min(kMorsel, taken_.size() - first));
        for (std::size_t c = 0; c < buffer_.columns.size(); ++c) {
            buffer_.columns[c].clear();
            gather(changed_.column(c), some, buffer_.columns[c]);
        }
        buffer_.rows = some.size();
        run.work(some.size());
        out.push(buffer_);
    }
    return taken_.size();
}

}  // namespace penstock::exec
