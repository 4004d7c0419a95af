#include "exec/operator.hpp"

namespace penstock::exec {

int Schema::index_of(Slot slot) const {
    for (std::size_t i = 0; i < slots.size(); ++i)
        if (slots[i] == slot) return static_cast<int>(i);
    return -1;
}

void Schema::add(Slot slot, bool may_be_unbound) {
    slots.push_back(slot);
    nullable.push_back(may_be_unbound ? 1 : 0);
}

void Schema::shape(Table& table) const {
    table.slots = slots;
    table.columns.resize(slots.size());
    for (Column& column : table.columns) column.clear();
    table.rows = 0;
}

namespace {

/// Wraps the consumer of an operator in a timed run.
class ProfiledSink final : public Sink {
public:
    ProfiledSink(Profiler& profiler, std::size_t producer, std::size_t consumer, Sink& out)
        : profiler_(profiler), producer_(producer), consumer_(consumer), out_(out) {}
    bool consume(Table& rows) override {
        profiler_.enter(consumer_);
        bool more = out_.push(rows);
        profiler_.enter(producer_);
        return more;
    }

private:
    Profiler& profiler_;
    std::size_t producer_, consumer_;
    Sink& out_;
};

}  // namespace

void Operator::run(Run& run, Sink& out) {
    const std::uint64_t before = out.pushed();
    if (run.profiler == nullptr) {
        produce(run, out);
    } else {
        const std::size_t consumer = run.profiler->enter(profile_index_);
        ProfiledSink timed(*run.profiler, profile_index_, consumer, out);
        produce(run, timed);
        run.profiler->enter(consumer);
    }
    // All rows that reached the consumer meanwhile are from this operator: a sink has one producer at a time.
    run.produced[profile_index_] += out.pushed() - before;
}

void Unary::produce(Run& run, Sink& out) {
    run_ = &run;
    out_ = &out;
    begin();
    in_->run(run, *this);
    finish();
}

}  // namespace penstock::exec
