// Bindings of the stored graph in stores; signatures in _native.pyi.
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

/// The snapshot of a view, and the commits that it excludes: with both, a store can open an equal view.
std::pair<Snapshot, std::vector<Snapshot>> visible_in(const Source& source) {
    const auto* const view = dynamic_cast<const remote::RemoteView*>(&source);
    if (view == nullptr) throw DataError("not a view over stores");
    return {view->snapshot(), view->excluded()};
}

/// Python's time.monotonic() uses the same clock.
RemoteStore::Clock::time_point clock_time(double seconds) {
    const std::chrono::duration<double> since(seconds);
    return RemoteStore::Clock::time_point(std::chrono::duration_cast<RemoteStore::Clock::duration>(since));
}

}  // namespace
}  // namespace penstock

void bind_remote(nb::module_& m) {
    using namespace penstock;
    const auto unlocked = nb::call_guard<Unlocked>();
    nb::class_<RemoteStore, Labelled>(m, "RemoteStore", "The stored graph, which an engine reads from stores.")
        .def(nb::init<std::size_t>(), "shards"_a)
        .def("attach", &RemoteStore::attach, "node"_a, "plane"_a, "shards"_a = std::nullopt, unlocked)
        .def(
            "lease",
            [](RemoteStore& store, Snapshot snapshot, double until) { store.lease(snapshot, clock_time(until)); },
            "snapshot"_a, "until"_a)
        .def("detach", &RemoteStore::detach, "node"_a, unlocked)
        .def("oldest_needed", &RemoteStore::oldest_needed, "otherwise"_a = std::nullopt)
        .def("release", &RemoteStore::release, "stream"_a, "batch"_a)
        .def("latest", &RemoteStore::latest, unlocked)
        .def("view", &open_view, "bounds"_a = Bounds{}, "at"_a = std::nullopt, nb::keep_alive<0, 1>())
        .def("edge_count", &RemoteStore::edge_count, unlocked)
        .def("rounds", &RemoteStore::rounds);
    m.def("visible_in", &visible_in, "view"_a);
}
