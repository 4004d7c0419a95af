// Bindings for bulk loads: terms in Arrow's columns, bins of edges. Signatures in _native.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "edge_labels.hpp"
#include "errors.hpp"
#include "rdf/ntriples.hpp"
#include "rdf/term_columns.hpp"
#include "store/bulk_load.hpp"
#include "store/sort.hpp"
#include "term_tuples.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

using TextOut = std::tuple<ColumnOut<std::int32_t>, ColumnOut<std::uint8_t>>;
using TextIn = std::tuple<ColumnIn<std::int32_t>, ColumnIn<std::uint8_t>>;

TextOut to_numpy(TextColumn&& texts) {
    return {penstock::to_numpy(std::move(texts.offsets)),
            penstock::to_numpy<char, std::uint8_t>(std::move(texts.bytes))};
}

TextColumnView texts(const TextIn& column) { return {view(std::get<0>(column)), view(std::get<1>(column))}; }

nb::tuple columns(const Dictionary& dictionary, std::uint64_t from, std::size_t at_most_terms,
                  std::size_t about_bytes) {
    TermColumns part;
    {
        const Unlocked released;
        part = dictionary.columns(from, at_most_terms, about_bytes);
    }
    return nb::make_tuple(penstock::to_numpy(std::move(part.ids)), penstock::to_numpy(std::move(part.kinds)),
                          to_numpy(std::move(part.lexicals)), to_numpy(std::move(part.datatypes)),
                          to_numpy(std::move(part.langs)), part.next);
}

IdsOut intern_columns(Dictionary& dictionary, const ColumnIn<std::uint8_t>& kinds, const TextIn& lexicals,
                      const TextIn& datatypes, const TextIn& langs) {
    std::vector<TermId> ids(kinds.size());
    {
        const Unlocked released;
        const auto terms = term_views(view(kinds), texts(lexicals), texts(datatypes), texts(langs));
        dictionary.intern(terms, ids.data());
    }
    return penstock::to_numpy(std::move(ids));
}

/// For each term 1 if it is no valid IRI or literal, else 0.
ColumnOut<std::uint8_t> invalid_terms(const ColumnIn<std::uint8_t>& kinds, const TextIn& lexicals,
                                      const TextIn& datatypes, const TextIn& langs) {
    std::vector<std::uint8_t> invalid;
    invalid.reserve(kinds.size());
    for (const TermView& term : term_views(view(kinds), texts(lexicals), texts(datatypes), texts(langs))) {
        try {
            check_term(term);
            invalid.push_back(0);
        } catch (const DataError&) {
            invalid.push_back(1);
        }
    }
    return penstock::to_numpy(std::move(invalid));
}

void adopt(Dictionary& dictionary, const IdsIn& ids, const ColumnIn<std::uint8_t>& kinds, const TextIn& lexicals,
           const TextIn& datatypes, const TextIn& langs) {
    const Unlocked released;
    dictionary.adopt(view(ids), term_views(view(kinds), texts(lexicals), texts(datatypes), texts(langs)));
}

std::tuple<IdsOut, TextOut> blank_labels(const BlankScope& scope) {
    std::vector<TermId> ids;
    TextColumn labels;
    for (const auto& [label, id] : scope.nodes()) {
        ids.push_back(id);
        labels.push(label);
    }
    return {penstock::to_numpy(std::move(ids)), to_numpy(std::move(labels))};
}

/// Labels sorted by their pairs, so that files do not depend on the order in which a task met them.
struct RankedLabels {
    std::vector<Label> rank;                       // by label
    std::vector<std::pair<TermId, TermId>> pairs;  // by rank
};

RankedLabels ranked(const LabelTable& labels) {
    RankedLabels out;
    std::vector<std::pair<std::pair<TermId, TermId>, Label>> order;
    for (Label label = 1; label <= labels.size(); ++label) order.emplace_back(labels.pair(label), label);
    std::sort(order.begin(), order.end());
    out.rank.resize(order.size() + 1);
    for (const auto& [pair, label] : order) {
        out.rank[label] = static_cast<Label>(out.pairs.size());
        out.pairs.push_back(pair);
    }
    return out;
}

ColumnOut<std::uint32_t> bins(const IdsIn& vertices, std::size_t shards, std::size_t pieces) {
    if (shards == 0 || pieces == 0 || shards * pieces > UINT32_MAX) throw LimitError("too many bins, or none");
    std::vector<std::uint32_t> numbers;
    numbers.reserve(vertices.size());
    for (const TermId vertex : view(vertices))
        numbers.push_back(static_cast<std::uint32_t>(bin_number(vertex, shards, pieces)));
    return penstock::to_numpy(std::move(numbers));
}

/// The ends of one bin's edges in the order of bulk files: by (graph, predicate), vertex, value, without duplicates.
std::tuple<IdsOut, IdsOut, IdsOut, IdsOut> sort_edges(const IdsIn& graphs, const IdsIn& predicates,
                                                      const IdsIn& vertices, const IdsIn& values) {
    const std::size_t n = vertices.size();
    if (graphs.size() != n || predicates.size() != n || values.size() != n)
        throw DataError("edges in columns of unequal length");
    std::vector<TermId> sorted[4];
    {
        const Unlocked released;
        LabelTable met;
        EdgeLabels label_of(met);
        std::vector<Keyed> ends(n);
        for (std::size_t i = 0; i < n; ++i)
            ends[i] = {vertices.data()[i], label_of(graphs.data()[i], predicates.data()[i]), values.data()[i]};
        const auto by_rank = ranked(met);
        for (Keyed& end : ends) end.label = by_rank.rank[end.label];
        sort_by_label(ends);
        for (auto& column : sorted) column.reserve(ends.size());
        for (const Keyed& end : ends) {
            const auto [graph, predicate] = by_rank.pairs[end.label];
            sorted[0].push_back(graph);
            sorted[1].push_back(predicate);
            sorted[2].push_back(end.vertex);
            sorted[3].push_back(end.value);
        }
    }
    return {penstock::to_numpy(std::move(sorted[0])), penstock::to_numpy(std::move(sorted[1])),
            penstock::to_numpy(std::move(sorted[2])), penstock::to_numpy(std::move(sorted[3]))};
}

/// A load and the store that it loads into; creates the store's labels.
class Load {
public:
    Load(Store& store, std::size_t pieces, std::size_t shards, std::uint32_t stream, std::int64_t batch,
         std::optional<Snapshot> snapshot)
        : store_(store), load_(store, {pieces, shards, {stream, batch}, snapshot}) {}

    void append(std::size_t bin, int direction, const IdsIn& graphs, const IdsIn& predicates, const IdsIn& vertices,
                const IdsIn& values) {
        const std::size_t n = vertices.size();
        if (direction != 0 && direction != 1) throw DataError("direction is 0 (out) or 1 (in)");
        if (graphs.size() != n || predicates.size() != n || values.size() != n)
            throw DataError("a bin with columns of unequal length");
        const Unlocked released;
        EdgeLabels labels(store_.labels());
        ends_.resize(n);
        for (std::size_t i = 0; i < n; ++i)
            ends_[i] = {vertices.data()[i], labels(graphs.data()[i], predicates.data()[i]), values.data()[i]};
        load_.append(bin, static_cast<Dir>(direction), ends_);
    }
    Snapshot publish() {
        const Unlocked released;
        return load_.publish();
    }

private:
    Store& store_;
    BulkLoad load_;
    std::vector<Keyed> ends_;
};

}  // namespace
}  // namespace penstock

void bind_bulk(nb::module_& m) {
    using namespace penstock;
    m.def("dictionary_columns", &columns, "dictionary"_a, "first_slot"_a, "at_most_terms"_a, "about_bytes"_a);
    m.def("next_slot", &Dictionary::next_slot, "dictionary"_a);
    m.def("intern_columns", &intern_columns, "dictionary"_a, "kinds"_a, "lexicals"_a, "datatypes"_a, "langs"_a);
    m.def("invalid_terms", &invalid_terms, "kinds"_a, "lexicals"_a, "datatypes"_a, "langs"_a);
    m.def("adopt_columns", &adopt, "dictionary"_a, "ids"_a, "kinds"_a, "lexicals"_a, "datatypes"_a, "langs"_a);
    m.def("blank_labels", &blank_labels, "scope"_a);
    m.def("bins", &bins, "vertices"_a, "shards"_a, "pieces"_a);
    m.def("sort_edges", &sort_edges, "graphs"_a, "predicates"_a, "vertices"_a, "values"_a);
    nb::class_<Load>(m, "BulkLoad", "A bulk load, which is one commit. Its edges are given in bins.")
        .def(nb::init<Store&, std::size_t, std::size_t, std::uint32_t, std::int64_t, std::optional<Snapshot>>(),
             "store"_a, "pieces"_a, "shards"_a = 0, "stream"_a = 0, "batch"_a = 0, "snapshot"_a = nb::none(),
             nb::keep_alive<1, 2>())
        .def("append", &Load::append, "bin"_a, "direction"_a, "graphs"_a, "predicates"_a, "vertices"_a, "values"_a)
        .def("publish", &Load::publish);
}
