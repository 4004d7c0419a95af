// Plan, execute() and Result: see _native.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "exec/executor.hpp"
#include "exec/forking.hpp"
#include "exec/indexed_seed.hpp"
#include "exec/maintenance.hpp"
#include "exec/rows.hpp"
#include "foreign.hpp"
#include "spec.hpp"
#include "store/sharding.hpp"
#include "store/store.hpp"
#include "traverse.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

/// A profile, and the instant of the run that its times belong to.
struct TimestampedProfile : Profile {
    std::optional<std::int64_t> timed_at_ms;
};

/// An answer with what its local terms require. Columns are exported as views; sort_by() works in place before that.
struct Result {
    explicit Result(const Dictionary& dictionary) : terms(dictionary) {}
    LocalTerms terms;
    Answer answer;
    AnswerChange change;
    std::int64_t nanos = 0;
    std::int64_t cpu_nanos = 0;

    const Table& table() const { return *answer; }
    std::size_t column_of(std::uint64_t slot) const {
        int column = slot > 0xFFFF ? -1 : table().index_of(static_cast<Slot>(slot));
        if (column < 0) throw nb::index_error("the answer has no such slot");
        return static_cast<std::size_t>(column);
    }
    void sort_by(std::size_t column) {
        if (std::ranges::is_sorted(table().columns[column])) return;
        if (answer.use_count() != 1) answer = std::make_shared<Table>(table());
        exec::sort_by(*answer, column);
    }
};

/// Processor time of this thread. A system call that costs as much as an execution of a small plan.
std::int64_t thread_nanos() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// A table of one row.
Table seed_row(const std::vector<TermId>& ids) {
    Table table;
    table.rows = 1;
    for (const TermId id : ids) table.columns.push_back({id});
    return table;
}

Table seed_table(const std::vector<IdsIn>& seed, std::size_t rows) {
    Table table;
    table.rows = seed.empty() ? rows : seed[0].size();
    for (const IdsIn& column : seed) {
        if (column.size() != table.rows) throw nb::value_error("the seed's columns differ in length");
        table.columns.emplace_back(column.data(), column.data() + column.size());
    }
    return table;
}

std::unique_ptr<Result> execute(const Plan& plan, Labelled& store, const Dictionary& dictionary,
                                const std::vector<const Source*>& sources,
                                const std::variant<exec::IndexedSeed*, std::vector<IdsIn>, std::vector<TermId>>& seed,
                                std::size_t seed_rows, std::int64_t now_ms,
                                const std::vector<std::pair<std::int64_t, std::int64_t>>& windows, double timeout_s,
                                std::size_t memory_bytes, std::uint64_t random_seed, nb::object foreign,
                                TimestampedProfile* profile, bool cpu_time, exec::Forker* forker,
                                const std::vector<TermId>& absent, std::uint64_t since,
                                std::shared_ptr<exec::MaintenanceTotals> totals) {
    auto result = std::make_unique<Result>(dictionary);
    for (const TermId id : absent) result->terms.pin(id);
    exec::IndexedSeed* indexed = nullptr;
    Table parameters;
    if (const auto* given = std::get_if<exec::IndexedSeed*>(&seed)) {
        indexed = *given;
        indexed->begin_run(plan.seed());
    } else {
        const auto* row = std::get_if<std::vector<TermId>>(&seed);
        parameters = row != nullptr ? seed_row(*row) : seed_table(std::get<std::vector<IdsIn>>(seed), seed_rows);
        if (parameters.columns.size() != plan.seed().size())
            throw nb::value_error("the seed needs a column for each of the plan's seed slots");
        parameters.slots = plan.seed();
    }
    std::vector<std::int64_t> starts, ends;
    for (auto [start, end] : windows) {
        starts.push_back(start);
        ends.push_back(end);
    }
    Budget budget(timeout_s, memory_bytes);
    ExprContext context{result->terms, budget, now_ms, starts, ends, random_seed, {}, {}, {}};
    if (!foreign.is_none()) context.foreign = foreign_function(std::move(foreign), budget);
    const bool timed = profile != nullptr && profile->timed;
    result->change.from = since;
    RunInput input{indexed != nullptr ? &indexed->table() : &parameters,
                   sources,
                   &store.labels(),
                   &context,
                   profile,
                   forker,
                   &result->change,
                   std::move(totals),
                   indexed};
    {
        Unlocked released;
        const std::int64_t cpu_began = cpu_time ? thread_nanos() : 0;
        auto began = std::chrono::steady_clock::now();
        result->answer = plan.run(input);
        result->nanos = std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count();
        if (cpu_time) result->cpu_nanos = thread_nanos() - cpu_began;
    }
    if (timed) profile->timed_at_ms = now_ms;
    return result;
}

/// Passes the rows of a fork to Python, which sends them to the nodes. Called by the evaluating thread without the GIL.
class PythonForker final : public exec::Forker {
public:
    PythonForker(std::vector<std::uint32_t> owners, nb::object run) : owners_(std::move(owners)), run_(std::move(run)) {
        if (owners_.empty()) throw DataError("a forker needs the shards' nodes");
        nodes_ = std::size_t{*std::max_element(owners_.begin(), owners_.end())} + 1;
    }
    std::size_t nodes() const override { return nodes_; }
    std::size_t node_of(TermId vertex) const override { return owners_[shard_number(vertex, owners_.size())]; }

    std::vector<Table> run(std::uint32_t fork, std::vector<Table> rows, const Budget& budget) override {
        nb::gil_scoped_acquire acquired;
        if (!run_.is_valid()) throw DataError("the forker's callable was collected");
        nb::list parts;
        for (Table& table : rows) {
            if (table.rows == 0) {
                parts.append(nb::none());
                continue;
            }
            nb::list columns;
            for (Column& column : table.columns) columns.append(to_numpy(std::move(column)));
            parts.append(nb::make_tuple(std::vector<std::uint32_t>(table.slots.begin(), table.slots.end()), columns));
        }
        std::vector<Table> found;
        for (nb::handle part : run_(fork, parts, budget.seconds_left(), budget.bytes_left()))
            found.push_back(part.is_none() ? Table() : table_of(part));
        return found;
    }

    /// The Python callable, for the garbage collector.
    nb::object& held() { return run_; }

private:
    static Table table_of(nb::handle part) {
        auto [slots, columns] = nb::cast<std::pair<std::vector<std::uint32_t>, std::vector<IdsIn>>>(part);
        if (slots.size() != columns.size()) throw DataError("a fork's columns are not those of its slots");
        Table table;
        table.rows = columns.empty() ? 0 : columns[0].size();
        for (const std::uint32_t slot : slots) table.slots.push_back(static_cast<Slot>(slot));
        for (const IdsIn& column : columns) table.columns.emplace_back(column.data(), column.data() + column.size());
        return table;
    }
    std::vector<std::uint32_t> owners_;  // by shard
    nb::object run_;
    std::size_t nodes_;
};

nb::object* held_by(PythonForker& forker) { return &forker.held(); }

IdsOut column(nb::handle_t<Result> self, std::size_t i) {
    const Table& table = nb::cast<const Result&>(self).table();
    if (i >= table.columns.size()) throw nb::index_error("the answer has no such column");
    return array_over(table.columns[i].data(), table.rows, self);
}

nb::list columns(nb::handle_t<Result> self, const std::vector<std::uint64_t>& slots) {
    const auto& result = nb::cast<const Result&>(self);
    nb::list found;
    for (const std::uint64_t slot : slots) found.append(column(self, result.column_of(slot)));
    return found;
}

/// As columns(), with an id of the dictionary in place of each id that is local to the result.
nb::tuple published(nb::handle_t<Result> self, const std::vector<std::uint64_t>& slots) {
    auto& result = nb::cast<Result&>(self);
    auto found = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(slots.size())));
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const std::size_t index = result.column_of(slots[i]);
        const Column& ids = result.table().columns[index];
        // Python has no const dictionaries. LocalTerms only guarantees that evaluations do not modify theirs.
        auto& dictionary = const_cast<Dictionary&>(result.terms.dictionary());
        std::vector<TermId> replaced;
        const bool same = result.terms.published(ids, dictionary, replaced).data() == ids.data();
        nb::object out = same ? column(self, index) : nb::object(to_numpy(std::move(replaced)));
        PyTuple_SET_ITEM(found.ptr(), static_cast<Py_ssize_t>(i), out.release().ptr());
    }
    return found;
}

auto offsets(const Result& result, std::uint64_t slot, std::size_t members) {
    const Column& column = result.table().columns[result.column_of(slot)];
    std::vector<std::int64_t> starts(members + 1, static_cast<std::int64_t>(column.size()));
    std::size_t member = 0;
    for (std::size_t row = 0; row < column.size(); ++row) {
        if (column[row] >= members) throw nb::value_error("a member's number is not below `members`");
        while (member <= column[row]) starts[member++] = static_cast<std::int64_t>(row);
    }
    return to_numpy(std::move(starts));
}

std::pair<IdsOut, ColumnOut<std::int64_t>> runs(const IdsIn& column) {
    std::vector<TermId> values;
    std::vector<std::int64_t> starts;
    const auto rows = view(column);
    if (!rows.empty() && rows.front() != rows.back()) {
        std::size_t count = 1;
        for (std::size_t row = 1; row < rows.size(); ++row) count += rows[row] != rows[row - 1] ? 1 : 0;
        values.reserve(count);
        starts.reserve(count + 1);
    }
    for (std::size_t row = 0; row < rows.size();) {
        const TermId value = rows[row];
        values.push_back(value);
        starts.push_back(static_cast<std::int64_t>(row));
        if (value == rows[rows.size() - 1]) break;  // always so for a single member
        while (rows[row] == value) ++row;
    }
    starts.push_back(static_cast<std::int64_t>(rows.size()));
    return {to_numpy(std::move(values)), to_numpy(std::move(starts))};
}

auto difference(const std::vector<IdsIn>& a, const std::vector<IdsIn>& b) {
    if (a.size() != b.size()) throw nb::value_error("the two tables differ in their number of columns");
    auto spans = [](const std::vector<IdsIn>& columns) {
        std::vector<std::span<const TermId>> made;
        for (const IdsIn& column : columns) {
            if (column.size() != columns[0].size()) throw nb::value_error("columns differ in length");
            made.emplace_back(column.data(), column.size());
        }
        return made;
    };
    auto left = spans(a), right = spans(b);
    std::vector<std::int64_t> rows;
    if (!left.empty()) {
        Unlocked released;
        rows = exec::multiset_difference(left, left[0].size(), right, right[0].size());
    }
    return to_numpy(std::move(rows));
}

std::map<std::uint32_t, std::uint64_t> by_node(const std::vector<Profile::Figure>& figures) {
    std::map<std::uint32_t, std::uint64_t> sums;
    for (const Profile::Figure& figure : figures) sums[figure.id] += figure.value;
    return sums;
}

/// Node (None: the stream operator), the reason for a complete evaluation (None: updated), changed rows, and bytes.
using Maintained = std::tuple<std::optional<std::uint32_t>, std::optional<std::string>, std::uint64_t, std::size_t>;

std::vector<Maintained> maintained(const TimestampedProfile& profile) {
    std::vector<Maintained> out;
    for (const exec::MaintainedFigure& figure : profile.maintained) {
        Maintained& last = out.emplace_back(std::nullopt, std::nullopt, figure.changed_rows, figure.state_bytes);
        if (figure.id != exec::MaintainedFigure::kAnswer) std::get<0>(last) = figure.id;
        if (const char* reason = exec::reason(figure.outcome)) std::get<1>(last) = reason;
    }
    return out;
}

}  // namespace
}  // namespace penstock

void bind_exec(nb::module_& m) {
    using namespace penstock;
    nb::class_<Plan>(m, "Plan",
                     "A compiled physical plan (docs/plan-format.md). Several threads can execute it at the same time.")
        .def("__init__", [](Plan* self, nb::dict spec) { new (self) Plan(to_spec(spec)); }, "spec"_a);

    nb::class_<TimestampedProfile>(m, "Profile", "The rows of a plan's last run, and the times of its last timed run.")
        .def(nb::init<>())
        .def_prop_rw(
            "timed", [](const TimestampedProfile& p) { return p.timed; },
            [](TimestampedProfile& p, bool timed) { p.timed = timed; },
            "Whether the next run measures times. A timed run executes every operator. If it succeeds, it resets this "
            "flag.")
        .def_prop_ro(
            "reused", [](const TimestampedProfile& p) { return p.reused; },
            "Whether the last run has found by look-ups that its answer is unchanged. Such a run executes no operator.")
        .def_prop_ro(
            "timed_at_ms", [](const TimestampedProfile& p) { return p.timed_at_ms; },
            "The `now_ms` of the last timed run. None before the first timed run.")
        .def(
            "rows", [](const TimestampedProfile& p) { return by_node(p.rows); },
            "The number of rows of each node in the last run.")
        .def(
            "nanos", [](const TimestampedProfile& p) { return by_node(p.nanos); },
            "The time in ns of each node itself in the last timed run. Empty before the first timed run.")
        .def("maintained", &maintained, "The operators of the last run that can update their state from changes.");

    nb::class_<exec::MaintenanceTotals>(m, "MaintenanceTotals",
                                        "Counters of an engine's operators that can update their state from changes.")
        .def(nb::init<>())
        .def_prop_ro("updated", [](const exec::MaintenanceTotals& t) { return t.updated.load(); })
        .def_prop_ro("complete", [](const exec::MaintenanceTotals& t) { return t.complete.load(); })
        .def_prop_ro("state_bytes", [](const exec::MaintenanceTotals& t) { return t.state_bytes.load(); });

    nb::class_<Result>(m, "Result",
                       "An answer. It has columns of term ids by slot, and the terms that the evaluation has made.")
        .def_prop_ro(
            "slots",
            [](const Result& r) { return std::vector<std::uint32_t>(r.table().slots.begin(), r.table().slots.end()); })
        .def_prop_ro("rows", [](const Result& r) { return r.table().rows; })
        .def_prop_ro(
            "local", [](Result& r) -> LocalTerms& { return r.terms; }, nb::rv_policy::reference_internal)
        .def_prop_ro("nanos", [](const Result& r) { return r.nanos; })
        .def_prop_ro(
            "id", [](const Result& r) { return r.change.id; },
            "The number of the answer, for `since` of a later execution. 0 if a later execution cannot find the "
            "change.")
        .def_prop_ro(
            "added", [](const Result& r) { return r.change.known ? std::optional(r.change.added) : std::nullopt; },
            "The number of added rows, if the rows are the change since `since`. The removed rows follow the added "
            "rows.")
        .def_prop_ro(
            "cpu_nanos", [](const Result& r) { return r.cpu_nanos; },
            "The processor time of the thread in ns, including the time for the clock itself. 0 without `cpu_time`.")
        .def("column", &column, "i"_a,
             "Return a view of a column. The view keeps the Result alive. sort_by() changes the order in the view.")
        .def("columns", &columns, "slots"_a, "Return views of the columns of some slots (see `column`).")
        .def("published", &published, "slots"_a)
        .def("offsets", &offsets, "slot"_a, "members"_a,
             "Return where the rows of each member begin. Member m has the rows [offsets[m], offsets[m + 1]).")
        .def(
            "sort_by", [](Result& r, std::uint64_t slot) { r.sort_by(r.column_of(slot)); }, "slot"_a,
            "Sort the rows by the ids of a slot. The sort is stable.");

    nb::class_<exec::Forker>(m, "StepForker", "Runs forks of a plan on nodes.");
    nb::class_<PythonForker, exec::Forker>(m, "Forker", "Runs forks of a plan on nodes by calls of the function `run`.",
                                           nb::type_slots(kTraversed<PythonForker, held_by>))
        .def(nb::init<std::vector<std::uint32_t>, nb::object>(), "owners"_a, "run"_a);

    nb::class_<exec::IndexedSeed>(m, "Seed", "Parameters for many runs of a plan, with indexes.")
        .def(
            "__init__",
            [](exec::IndexedSeed* self, const std::vector<IdsIn>& columns) {
                new (self) exec::IndexedSeed(seed_table(columns, 1));
            },
            "columns"_a)
        .def_prop_ro("bytes", &exec::IndexedSeed::bytes, "The size of the columns and indexes in bytes.");
    m.def(
        "index_seeds_from", [](std::uint64_t rows) { return exec::IndexedSeed::from.exchange(rows); }, "rows"_a,
        "Set the number of rows from which on this process indexes seeds. Returns the previous number.");

    m.def("execute", &execute, "plan"_a, "store"_a, "dictionary"_a, "sources"_a, "seed"_a = nb::list(), nb::kw_only(),
          "seed_rows"_a = 1, "now_ms"_a = 0, "windows"_a = nb::list(), "timeout_s"_a = 0.0, "memory_bytes"_a = 0,
          "random_seed"_a = 0, "foreign"_a = nb::none(), "profile"_a = nb::none(), "cpu_time"_a = false,
          "forker"_a = nb::none(), "absent"_a = std::vector<TermId>(), "since"_a = 0, "totals"_a = nb::none(),
          nb::keep_alive<0, 3>());
    m.def(
        "maintain_from", [](std::uint64_t rows) { return exec::Maintenance::from.exchange(rows); }, "rows"_a,
        "Set the cost of an input in rows from which on operators of this process keep state. Returns the previous "
        "cost.");
    m.def(
        "maintained", [] { return exec::Maintenance::updates.load(); },
        "Return how often operators of this process have updated their state in place of a new evaluation.");
    m.def("runs", &runs, "column"_a,
          "Return the distinct values of a sorted column, where the rows of each value begin, and the end of the "
          "column.");
    m.def("multiset_difference", &difference, "a"_a, "b"_a);
}
