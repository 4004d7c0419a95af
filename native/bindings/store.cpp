// Bindings of the stored graph: Source (base of every window too), Store, ShardReader.
#include "store/store.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "edge_labels.hpp"
#include "errors.hpp"
#include "store/overlay.hpp"
#include "store/shard_reader.hpp"
#include "store/sharding.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using penstock::Dir;
using penstock::Edge;
using penstock::IdsIn;
using penstock::IdsOut;
using penstock::Label;
using penstock::Labelled;
using penstock::Overlay;
using penstock::ShardReader;
using penstock::Source;
using penstock::Store;
using penstock::StoreCapture;
using penstock::TermId;

namespace {

penstock::QuadSpans checked(const IdsIn& s, const IdsIn& p, const IdsIn& o, const IdsIn& g) {
    const std::size_t n = s.size();
    if (p.size() != n || o.size() != n || g.size() != n) throw penstock::DataError("commit: columns of unequal length");
    return {view(s), view(p), view(o), view(g)};
}

std::vector<Edge> make_edges(Labelled& store, const IdsIn& s, const IdsIn& p, const IdsIn& o, const IdsIn& g) {
    return penstock::make_edges(store.labels(), checked(s, p, o, g));
}

std::vector<Edge> known_edges(Labelled& store, const IdsIn& s, const IdsIn& p, const IdsIn& o, const IdsIn& g) {
    return penstock::known_edges(store.labels(), checked(s, p, o, g));
}

penstock::Snapshot commit(Store& store, const IdsIn& s, const IdsIn& p, const IdsIn& o, const IdsIn& g,
                          std::uint32_t stream, std::int64_t batch) {
    penstock::Unlocked release;
    return store.commit(make_edges(store, s, p, o, g), {stream, batch});
}

using ColumnsIn = std::tuple<IdsIn, IdsIn, IdsIn, IdsIn>;  // s, p, o, g

std::tuple<penstock::Snapshot, std::uint64_t, std::uint64_t> change(Store& store, const ColumnsIn& removed,
                                                                    const ColumnsIn& added, std::uint32_t stream,
                                                                    std::int64_t batch) {
    const penstock::Unlocked release;
    const auto edges = [&](auto make, const ColumnsIn& columns) {
        return std::apply([&](const auto&... column) { return make(store, column...); }, columns);
    };
    const std::vector<Edge> fewer = edges(known_edges, removed), more = edges(make_edges, added);
    const penstock::Changed changed = store.change(fewer, more, {stream, batch});
    return {changed.snapshot, changed.added, changed.removed};
}

/// An overlay, and the labels of its graph.
struct LabelledOverlay final : Overlay {
    LabelledOverlay(Labelled& labelled, const Source& base) : Overlay(base), graph(labelled) {}
    Labelled& graph;
};

std::tuple<IdsOut, IdsOut, IdsOut, IdsOut> columns_of(Labelled& graph, const std::vector<Edge>& edges) {
    std::vector<TermId> s, p, o, g;
    for (const Edge& edge : edges) {
        const auto [name, predicate] = graph.labels().pair(edge.label);
        s.push_back(edge.subject);
        p.push_back(predicate);
        o.push_back(edge.object);
        g.push_back(name);
    }
    return {penstock::to_numpy(std::move(s)), penstock::to_numpy(std::move(p)), penstock::to_numpy(std::move(o)),
            penstock::to_numpy(std::move(g))};
}

void add_to_overlay(LabelledOverlay& overlay, const IdsIn& s, const IdsIn& p, const IdsIn& o, const IdsIn& g) {
    const penstock::Unlocked release;
    overlay.add(make_edges(overlay.graph, s, p, o, g));
}

void remove_from_overlay(LabelledOverlay& overlay, const IdsIn& s, const IdsIn& p, const IdsIn& o, const IdsIn& g) {
    const penstock::Unlocked release;
    overlay.remove(known_edges(overlay.graph, s, p, o, g));
}

using LabelsIn = penstock::ColumnIn<Label>;

std::vector<Edge> labelled_edges(const IdsIn& s, const LabelsIn& labels, const IdsIn& o) {
    if (labels.size() != s.size() || o.size() != s.size())
        throw penstock::DataError("apply: columns of unequal length");
    std::vector<Edge> edges(s.size());
    for (std::size_t i = 0; i < edges.size(); ++i) edges[i] = {s.data()[i], labels.data()[i], o.data()[i]};
    return edges;
}

void apply(Store& store, penstock::Snapshot snapshot, const IdsIn& s, const LabelsIn& labels, const IdsIn& o,
           std::uint32_t stream, std::int64_t batch) {
    penstock::Unlocked release;
    store.apply(snapshot, labelled_edges(s, labels, o), {stream, batch});
}

using LabelledIn = std::tuple<IdsIn, LabelsIn, IdsIn>;  // s, labels, o

void apply_change(Store& store, penstock::Snapshot snapshot, const LabelledIn& removed, const LabelledIn& added,
                  std::uint32_t stream, std::int64_t batch) {
    penstock::Unlocked release;
    store.apply(snapshot, std::apply(labelled_edges, removed), std::apply(labelled_edges, added), {stream, batch});
}

/// Defines (graph, predicate) pairs under the label numbers of another table; DataError if a number differs here.
void define_labels(Labelled& store, Label first, const IdsIn& graphs, const IdsIn& predicates) {
    if (graphs.size() != predicates.size()) throw penstock::DataError("define_labels: columns of unequal length");
    if (first == 0 || first > store.labels().size() + 1)
        throw penstock::DataError("label " + std::to_string(first) + " leaves a gap");
    for (std::size_t i = 0; i < graphs.size(); ++i)
        if (store.labels().intern(graphs.data()[i], predicates.data()[i]) != first + i)
            throw penstock::DataError("label " + std::to_string(first + i) + " stands for something else here");
}

penstock::ColumnOut<Label> number_labels(Labelled& store, const IdsIn& graphs, const IdsIn& predicates) {
    if (graphs.size() != predicates.size()) throw penstock::DataError("number_labels: columns of unequal length");
    std::vector<Label> labels(graphs.size());
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = store.labels().intern(graphs.data()[i], predicates.data()[i]);
    return penstock::to_numpy(std::move(labels));
}

std::pair<IdsOut, IdsOut> label_pairs(Labelled& store, Label first) {
    std::vector<TermId> graphs, predicates;
    for (Label label = std::max(first, Label{1}); label <= store.labels().size(); ++label) {
        const auto [graph, predicate] = store.labels().pair(label);
        graphs.push_back(graph);
        predicates.push_back(predicate);
    }
    return {penstock::to_numpy(std::move(graphs)), penstock::to_numpy(std::move(predicates))};
}

void make_store(Store* self, const std::string& directory, std::size_t shards, std::size_t reserve_bytes,
                const std::vector<std::uint32_t>& own, bool publish_logs) {
    new (self) Store(directory, penstock::StoreOptions{shards, own, reserve_bytes, publish_logs});
}

using BoundsIn = std::vector<std::pair<std::uint32_t, std::int64_t>>;  // stream, batch

std::vector<penstock::StreamBound> to_bounds(const BoundsIn& bounds) {
    std::vector<penstock::StreamBound> native;
    native.reserve(bounds.size());
    for (const auto& [stream, batch] : bounds) native.push_back({stream, batch});
    return native;
}

std::unique_ptr<Source> view(Store& store, const BoundsIn& bounds) { return store.view(to_bounds(bounds)); }

std::unique_ptr<Source> view_past(Store& store, penstock::Snapshot before, penstock::Snapshot after,
                                  const BoundsIn& named, const BoundsIn& others) {
    return store.view_past(before, after, to_bounds(named), to_bounds(others));
}

std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> source_stats(const Source& source, Label label) {
    const auto stats = source.stats(label);
    return {stats.edges, stats.subjects, stats.objects};
}

void save(const Store& store, const std::string& directory) {
    penstock::Unlocked release;
    store.save(directory);
}

std::unique_ptr<StoreCapture> capture(const Store& store, const std::string& directory, const std::string& previous) {
    penstock::Unlocked release;
    return store.capture(directory, previous);
}

void write_capture(StoreCapture& capture) {
    penstock::Unlocked release;
    capture.write();
}

std::unique_ptr<Store> open(const std::string& saved, const std::string& directory, std::size_t reserve_bytes,
                            bool publish_logs) {
    penstock::Unlocked release;
    return Store::open(saved, directory,
                       penstock::StoreOptions{.reserve_bytes = reserve_bytes, .publish_logs = publish_logs});
}

Dir to_dir(int direction) {
    if (direction != 0 && direction != 1) throw penstock::DataError("direction is 0 (out) or 1 (in)");
    return static_cast<Dir>(direction);
}

IdsOut neighbours(const ShardReader& reader, TermId vertex, Label label, int direction) {
    std::vector<TermId> values;
    {
        penstock::Unlocked release;
        values = reader.neighbours(vertex, label, to_dir(direction));
    }
    return penstock::to_numpy(std::move(values));
}

IdsOut vertices(const ShardReader& reader, Label label, int direction) {
    std::vector<TermId> values;
    {
        penstock::Unlocked release;
        values = reader.vertices(label, to_dir(direction));
    }
    return penstock::to_numpy(std::move(values));
}

penstock::ColumnOut<std::uint32_t> shard_numbers(const IdsIn& vertices, std::size_t shards) {
    if (shards == 0 || shards > UINT32_MAX) throw penstock::LimitError("too many shards, or none");
    std::vector<std::uint32_t> numbers;
    numbers.reserve(vertices.size());
    for (const TermId vertex : penstock::view(vertices))
        numbers.push_back(static_cast<std::uint32_t>(penstock::shard_number(vertex, shards)));
    return penstock::to_numpy(std::move(numbers));
}

}  // namespace

void bind_store(nb::module_& m) {
    m.def("shard_numbers", &shard_numbers, "vertices"_a, "shards"_a);
    nb::class_<Source>(m, "Source", "An input of execute(): the stored graph at a snapshot, or a window.");

    constexpr std::size_t kReserve = std::size_t{1} << 36;
    nb::class_<Labelled>(m, "Labelled", "The edge labels of a stored graph.")
        .def(
            "label",
            [](Labelled& store, TermId graph, TermId predicate) { return store.labels().find(graph, predicate); },
            "graph"_a, "predicate"_a)
        .def("graphs", [](Labelled& store) { return store.labels().graphs(); })
        .def("define_labels", &define_labels, "first"_a, "graphs"_a, "predicates"_a)
        .def("number_labels", &number_labels, "graphs"_a, "predicates"_a)
        .def("label_pairs", &label_pairs, "first"_a = 1);

    nb::class_<penstock::StoreLease>(m, "StoreLease", "Retains the data that readers of a snapshot need.")
        .def_prop_ro("snapshot", &penstock::StoreLease::snapshot);

    nb::class_<StoreCapture>(m, "StoreCapture", "The state of a store at one moment. `write` writes it to disk.")
        .def("write", &write_capture)
        .def_prop_ro("changed_bytes", &StoreCapture::changed_bytes);

    nb::class_<Store, Labelled>(m, "Store", "The stored graph, with one writer at a time and any number of readers.")
        .def("__init__", &make_store, "directory"_a, "shards"_a = 1, "reserve_bytes"_a = kReserve,
             "own"_a = std::vector<std::uint32_t>{}, "publish_logs"_a = false)
        .def("apply", &apply, "snapshot"_a, "s"_a, "labels"_a, "o"_a, "stream"_a = 0, "batch"_a = 0)
        .def("apply_change", &apply_change, "snapshot"_a, "removed"_a, "added"_a, "stream"_a = 0, "batch"_a = 0)
        .def("set_vts", &Store::set_vts, "stream"_a, "batch"_a)
        .def("retire", &Store::retire)
        .def("lease", &Store::lease, "snapshot"_a, nb::keep_alive<0, 1>())
        .def("commit", &commit, "s"_a, "p"_a, "o"_a, "g"_a, "stream"_a = 0, "batch"_a = 0)
        .def("change", &change, "removed"_a, "added"_a, "stream"_a = 0, "batch"_a = 0)
        .def("latest", &Store::latest)
        .def("shard_count", &Store::shard_count)
        .def("view", &view, "bounds"_a = BoundsIn{}, nb::keep_alive<0, 1>())
        .def("view_past", &view_past, "before"_a, "after"_a, "named"_a, "others"_a, nb::keep_alive<0, 1>())
        .def("keep", &Store::keep, "snapshot"_a.none())
        .def("view_part", &Store::view_part, "snapshot"_a, "excluded"_a = std::vector<penstock::Snapshot>{},
             nb::keep_alive<0, 1>())
        .def("release", &Store::release, "stream"_a, "batch"_a)
        .def("edge_count", &Store::edge_count)
        .def("used_bytes", &Store::used_bytes)
        .def("log_bytes", &Store::log_bytes)
        .def("index_bytes", &Store::index_bytes)
        .def("save", &save, "directory"_a)
        .def("capture", &capture, "directory"_a, "previous"_a = "")
        .def_static("open", &open, "saved"_a, "directory"_a, "reserve_bytes"_a = kReserve, "publish_logs"_a = false);

    nb::class_<LabelledOverlay, Source>(m, "Overlay", "A view with the changes of an update that is not committed yet.")
        .def(nb::init<Labelled&, const Source&>(), "graph"_a, "base"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("add", &add_to_overlay, "s"_a, "p"_a, "o"_a, "g"_a)
        .def("remove", &remove_from_overlay, "s"_a, "p"_a, "o"_a, "g"_a)
        .def("added", [](const LabelledOverlay& overlay) { return columns_of(overlay.graph, overlay.added()); })
        .def("removed", [](const LabelledOverlay& overlay) { return columns_of(overlay.graph, overlay.removed()); });

    nb::class_<ShardReader>(m, "ShardReader", "A read-only mapping of a shard's region, in another process.")
        .def(nb::init<const std::string&>(), "path"_a)
        .def("latest", &ShardReader::latest)
        .def("neighbours", &neighbours, "vertex"_a, "label"_a, "direction"_a)
        .def("vertices", &vertices, "label"_a, "direction"_a)
        .def(
            "vts",
            [](const ShardReader& reader, std::uint32_t stream) -> std::optional<std::int64_t> {
                const std::int64_t batch = reader.vts(stream);
                return batch == penstock::kNever ? std::nullopt : std::optional(batch);
            },
            "stream"_a)
        .def("epoch", &ShardReader::epoch)
        .def("retired", &ShardReader::retired);

    m.def("source_stats", &source_stats, "source"_a, "label"_a);
    m.def(
        "source_degree",
        [](const Source& source, TermId vertex, Label label, int direction) {
            return source.degree(vertex, label, to_dir(direction));
        },
        "source"_a, "vertex"_a, "label"_a, "direction"_a);
}
