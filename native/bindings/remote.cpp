// Bindings of the stored graph on other nodes; signatures in _native.pyi.
#include "remote/part_publisher.hpp"
#include "remote/remote_slices.hpp"
#include "remote/remote_store.hpp"
#include "remote/remote_view.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "errors.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

using remote::RemoteStore;

using Bounds = std::vector<std::pair<std::uint32_t, std::int64_t>>;

std::unique_ptr<Source> open_view(RemoteStore& store, const Bounds& bounds, std::optional<Snapshot> at) {
    std::vector<StreamBound> native;
    for (const auto& [stream, batch] : bounds) native.push_back({stream, batch});
    const Unlocked released;
    return store.view(native, at);
}

Bounds releases(const RemoteStore& store) {
    Bounds all;
    for (const StreamBound& bound : store.releases()) all.emplace_back(bound.stream, bound.batch);
    return all;
}

std::vector<std::optional<std::int64_t>> stable_vts(RemoteStore& store, const std::vector<std::uint32_t>& streams) {
    std::vector<std::int64_t> stable;
    {
        const Unlocked released;
        stable = store.stable_vts(streams);
    }
    std::vector<std::optional<std::int64_t>> batches;
    for (const std::int64_t batch : stable) batches.push_back(batch == kNever ? std::nullopt : std::optional(batch));
    return batches;
}

/// The snapshot of a view, and the commits that it excludes: with both, a node can open an equal view.
std::pair<Snapshot, std::vector<Snapshot>> visible_in(const Source& source) {
    const auto* const view = dynamic_cast<const remote::RemoteView*>(&source);
    if (view == nullptr) throw DataError("not a view over nodes");
    return {view->snapshot(), view->excluded()};
}

/// Python's time.monotonic() uses the same clock.
RemoteStore::Clock::time_point clock_time(double seconds) {
    const std::chrono::duration<double> since(seconds);
    return RemoteStore::Clock::time_point(std::chrono::duration_cast<RemoteStore::Clock::duration>(since));
}

using LabelsIn = ColumnIn<Label>;

void publish(remote::PartPublisher& part, std::int64_t batch, const TimesIn& ts, const IdsIn& s, const IdsIn& o,
             const LabelsIn& labels) {
    const Unlocked released;
    part.publish(batch, view(ts), view(s), view(o), view(labels));
}

void make_part(remote::PartPublisher* self, const std::string& path, std::uint32_t stream, std::int64_t batch_ms,
               std::size_t shards, const std::vector<std::uint32_t>& own, std::size_t memory_bytes) {
    new (self) remote::PartPublisher(path, stream, batch_ms, shards, own, memory_bytes);
}

void bind_slices(nb::module_& m) {
    using remote::PartPublisher;
    using remote::RemoteSlices;
    const auto unlocked = nb::call_guard<Unlocked>();
    nb::class_<PartPublisher>(m, "PartPublisher", "A node's slices of one stream.")
        .def("__init__", &make_part, "path"_a, "stream"_a, "batch_ms"_a, "shards"_a, "own"_a, "memory_bytes"_a = 0)
        .def("publish", &publish, "batch"_a, "ts"_a, "s"_a, "o"_a, "labels"_a)
        .def("release", &PartPublisher::release, "batch"_a)
        .def("live", &PartPublisher::live)
        .def("held_bytes", &PartPublisher::held_bytes);
    nb::class_<RemoteSlices, SliceSource>(m, "RemoteSlices", "A stream's closed batches, copied from nodes.")
        .def(nb::init<RemoteStore&, std::uint32_t, std::int64_t, std::size_t>(), nb::keep_alive<1, 2>(), "store"_a,
             "stream"_a, "batch_ms"_a, "memory_bytes"_a = 0)
        .def("take", &RemoteSlices::take, "batch"_a, unlocked)
        .def("release", &RemoteSlices::release, "batch"_a)
        .def("tuples", &RemoteSlices::tuples)
        .def("bytes", &RemoteSlices::bytes);
}

}  // namespace
}  // namespace penstock

void bind_remote(nb::module_& m) {
    using namespace penstock;
    const auto unlocked = nb::call_guard<Unlocked>();
    nb::class_<RemoteStore, Labelled>(m, "RemoteStore", "The stored graph as an engine reads it from nodes.")
        .def(nb::init<std::size_t>(), "shards"_a)
        .def("attach", &RemoteStore::attach, "node"_a, "plane"_a, "shards"_a = std::nullopt, unlocked)
        .def(
            "lease",
            [](RemoteStore& store, Snapshot snapshot, double until) { store.lease(snapshot, clock_time(until)); },
            "snapshot"_a, "until"_a)
        .def("detach", &RemoteStore::detach, "node"_a, unlocked)
        .def("oldest_needed", &RemoteStore::oldest_needed, "otherwise"_a = std::nullopt)
        .def("release", &RemoteStore::release, "stream"_a, "batch"_a)
        .def("releases", &releases)
        .def("latest", &RemoteStore::latest, unlocked)
        .def("published", &RemoteStore::published, "snapshot"_a)
        .def("stable_vts", &stable_vts, "streams"_a)
        .def("view", &open_view, "bounds"_a = Bounds{}, "at"_a = std::nullopt, nb::keep_alive<0, 1>())
        .def("edge_count", &RemoteStore::edge_count, unlocked)
        .def("refresh", &RemoteStore::refresh, unlocked)
        .def("rounds", &RemoteStore::rounds);
    m.def("visible_in", &visible_in, "view"_a);
    bind_slices(m);
}
