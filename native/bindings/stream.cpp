// Bindings of streams and their windows; signatures in _native.pyi.
#include "stream/stream.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "stream/beyond.hpp"
#include "stream/window.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

std::optional<std::int64_t> unless_never(std::int64_t batch) {
    return batch == kNever ? std::nullopt : std::optional(batch);
}

template <class Saved>
nb::bytes save(const Saved& object) {
    std::string saved;
    {
        const Unlocked released;
        saved = object.save();
    }
    return nb::bytes(saved.data(), saved.size());
}

template <class Saved>
void restore(Saved& object, const nb::bytes& saved) {
    const std::string_view bytes(saved.c_str(), saved.size());
    const Unlocked released;
    object.restore(bytes);
}

void make_stream(Stream* self, Store& store, Dictionary& dictionary, std::uint32_t number, std::int64_t batch_ms,
                 const std::optional<IdsIn>& timing, TermId absorb_graph, std::size_t memory_bytes) {
    StreamOptions options;
    options.number = number;
    options.batch_ms = batch_ms;
    options.all_timing = !timing;
    if (timing) options.timing.assign(timing->data(), timing->data() + timing->size());
    options.absorb_graph = absorb_graph;
    options.memory_bytes = memory_bytes;
    new (self) Stream(store, dictionary, std::move(options));
}

/// Outcomes, or none if every event is accepted, the common case, in which Python then has nothing to inspect.
std::pair<std::optional<ColumnOut<std::uint8_t>>, std::int64_t> decide(const TimesIn& ts, std::int64_t watermark,
                                                                       std::int64_t lateness_ms, std::int64_t wall_ms,
                                                                       std::int64_t max_ahead_ms) {
    static_assert(sizeof(Outcome) == 1);
    std::vector<std::uint8_t> outcomes(ts.size());
    {
        const Unlocked released;
        const std::span<Outcome> rows(reinterpret_cast<Outcome*>(outcomes.data()), outcomes.size());
        watermark = Stream::decide(view(ts), watermark, lateness_ms, wall_ms, max_ahead_ms, rows);
    }
    const auto is_accepted = [](std::uint8_t outcome) {
        return outcome == static_cast<std::uint8_t>(Outcome::Accepted);
    };
    if (!outcomes.empty() && std::all_of(outcomes.begin(), outcomes.end(), is_accepted))
        return {std::nullopt, watermark};
    return {to_numpy(std::move(outcomes)), watermark};
}

std::pair<ColumnOut<std::uint8_t>, std::int64_t> decide_partition(const TimesIn& ts, std::int64_t watermark,
                                                                  std::int64_t own, std::int64_t others,
                                                                  std::int64_t lateness_ms, std::int64_t wall_ms,
                                                                  std::int64_t max_ahead_ms) {
    std::vector<std::uint8_t> outcomes(ts.size());
    {
        const Unlocked released;
        const std::span<Outcome> rows(reinterpret_cast<Outcome*>(outcomes.data()), outcomes.size());
        own = Stream::decide_partition(view(ts), watermark, own, others, lateness_ms, wall_ms, max_ahead_ms, rows);
    }
    return {to_numpy(std::move(outcomes)), own};
}

void append(Stream& stream, const TimesIn& ts, const IdsIn& s, const IdsIn& p, const IdsIn& o) {
    const Unlocked released;
    stream.append(view(ts), view(s), view(p), view(o));
}

void append_changes(Stream& stream, const TimesIn& ts, const IdsIn& s, const IdsIn& p, const IdsIn& o,
                    const ColumnIn<std::uint8_t>& removed) {
    const Unlocked released;
    stream.append_changes(view(ts), view(s), view(p), view(o), view(removed));
}

/// Up to this many events, ingestion is faster than releasing and acquiring the GIL.
constexpr std::size_t kFew = 1024;

std::optional<std::int64_t> take(Stream& stream, const TimesIn& ts, const IdsIn& s, const IdsIn& p, const IdsIn& o,
                                 Beyond& beyond, std::int64_t watermark, std::int64_t lateness_ms,
                                 std::int64_t max_ahead_ms, std::int64_t time_limit, std::int64_t until) {
    std::optional<Unlocked> released;
    if (ts.size() > kFew) released.emplace();
    const Arrival arrival{watermark, lateness_ms, watermark, max_ahead_ms};
    const auto moved = stream.take(view(ts), view(s), view(p), view(o), arrival, time_limit, until);
    if (moved) beyond.add(view(ts), *moved);
    return moved;
}

/// Closes several streams, each up to its batch. Releases the GIL only once.
std::vector<std::size_t> close_together(const std::vector<std::pair<Stream*, std::int64_t>>& streams) {
    std::vector<std::size_t> held;
    held.reserve(streams.size());
    const Unlocked released;
    for (const auto& [stream, batch] : streams) held.push_back(stream->close(batch));
    return held;
}

void check(const Dictionary& dictionary, const TimesIn& ts, const IdsIn& s, const IdsIn& p, const IdsIn& o,
           std::int64_t time_limit) {
    Stream::check(dictionary, view(ts), view(s), view(p), view(o), time_limit);
}

std::optional<Tick> oldest_tick(const Stream& stream) {
    const Tick tick = stream.oldest_tick();
    return tick == std::numeric_limits<Tick>::max() ? std::nullopt : std::optional(tick);
}

std::vector<std::pair<std::int64_t, std::uint64_t>> take_reports(CountWindow& window, std::int64_t batch) {
    std::vector<CountWindow::Report> reports;
    {
        const Unlocked released;
        reports = window.take(batch);
    }
    std::vector<std::pair<std::int64_t, std::uint64_t>> pairs;
    for (const auto& report : reports) pairs.emplace_back(report.time, report.position);
    return pairs;
}

void bind_streams(nb::module_& m) {
    const auto unlocked = nb::call_guard<Unlocked>();
    nb::class_<Beyond>(m, "Beyond", "The times of accepted events after the watermark of their stream.")
        .def(nb::init<>())
        .def(
            "add",
            [](Beyond& beyond, const TimesIn& times, std::int64_t watermark) { beyond.add(view(times), watermark); },
            "times"_a, "watermark"_a)
        .def(
            "after",
            [](Beyond& beyond, std::int64_t watermark) {
                const auto times = beyond.after(watermark);
                return to_numpy(std::vector<std::int64_t>(times.begin(), times.end()));
            },
            "watermark"_a)
        .def("held", &Beyond::held);
    nb::class_<SliceSource>(m, "SliceSource", "Closed batches of a stream, for windows.")
        .def("closed", [](const SliceSource& stream) { return unless_never(stream.closed()); });
    nb::class_<Stream, SliceSource>(m, "Stream", "The open batches and the slices of one stream.")
        .def("__init__", &make_stream, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), "store"_a, "dictionary"_a,
             nb::kw_only(), "number"_a, "batch_ms"_a, "timing"_a.none(), "absorb_graph"_a = 0, "memory_bytes"_a = 0)
        .def_static("decide", &decide, "ts"_a, "watermark"_a, "lateness_ms"_a, "wall_ms"_a, "max_ahead_ms"_a)
        .def_static("decide_partition", &decide_partition, "ts"_a, "watermark"_a, "own"_a, "others"_a, "lateness_ms"_a,
                    "wall_ms"_a, "max_ahead_ms"_a)
        .def_static("check", &check, "dictionary"_a, "ts"_a, "s"_a, "p"_a, "o"_a, "time_limit"_a)
        .def("take", &take, nb::arg("ts").noconvert(), nb::arg("s").noconvert(), nb::arg("p").noconvert(),
             nb::arg("o").noconvert(), "beyond"_a, "watermark"_a, "lateness_ms"_a, "max_ahead_ms"_a, "time_limit"_a,
             "until"_a)
        .def("append", &append, "ts"_a, "s"_a, "p"_a, "o"_a)
        .def("append_changes", &append_changes, "ts"_a, "s"_a, "p"_a, "o"_a, "removed"_a)
        .def("removals", &Stream::removals, nb::rv_policy::reference_internal)
        .def("close", &Stream::close, "batch"_a, unlocked)
        .def_static("close_together", &close_together, "streams"_a)
        .def("first_open", &Stream::first_open)
        .def("release", &Stream::release, "batch"_a)
        .def("oldest_tick", &oldest_tick)
        .def("live_tuples", &Stream::live_tuples)
        .def("stored_tuples", &Stream::stored_tuples)
        .def("live_bytes", &Stream::live_bytes)
        .def("held_bytes", &Stream::held_bytes)
        .def("save", &save<Stream>)
        .def("restore", &restore<Stream>, "saved"_a);
}

void bind_windows(nb::module_& m) {
    const auto unlocked = nb::call_guard<Unlocked>();
    nb::class_<TimeWindow, Source>(m, "TimeWindow", "The tuples of a stream with an event time in (start, end].")
        .def(nb::init<const SliceSource&>(), nb::keep_alive<1, 2>(), "stream"_a)
        .def("advance", &TimeWindow::advance, "start"_a, "end"_a, unlocked)
        .def("size", &TimeWindow::size)
        .def("bytes", &TimeWindow::bytes);
    nb::class_<CountWindow, Source>(m, "CountWindow",
                                    "The last `size` tuples of a stream. The window reports after every `step` tuples.")
        .def(nb::init<const SliceSource&, std::uint64_t, std::uint64_t, std::int64_t>(), nb::keep_alive<1, 2>(),
             "stream"_a, "size"_a, "step"_a, "after_ms"_a)
        .def("take", &take_reports, "batch"_a)
        .def("advance", &CountWindow::advance, "position"_a, unlocked)
        .def("bounds", &CountWindow::bounds)
        .def("size", &CountWindow::size)
        .def("bytes", &CountWindow::bytes)
        .def("oldest_batch", [](const CountWindow& window) { return unless_never(window.oldest_batch()); })
        .def("save", &save<CountWindow>)
        .def("restore", &restore<CountWindow>, "saved"_a);
}

}  // namespace
}  // namespace penstock

void bind_stream(nb::module_& m) {
    penstock::bind_streams(m);
    penstock::bind_windows(m);
}
