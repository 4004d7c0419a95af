#include "exec/dataset.hpp"

#include <algorithm>
#include <tuple>

namespace penstock::exec {

void sort_into_groups(std::vector<EdgeSet>& sets) {
    if (sets.size() < 2) return;
    auto key = [](const EdgeSet& e) { return std::make_tuple(e.predicate, e.graph, e.source_number, e.label); };
    std::sort(sets.begin(), sets.end(), [&](const EdgeSet& a, const EdgeSet& b) { return key(a) < key(b); });
    sets.erase(
        std::unique(sets.begin(), sets.end(), [&](const EdgeSet& a, const EdgeSet& b) { return key(a) == key(b); }),
        sets.end());
}

std::span<const EdgeSet> first_group(std::span<const EdgeSet> sets) {
    std::size_t n = 1;
    while (n < sets.size() && sets[n].same_group(sets[0])) ++n;
    return sets.first(n);
}

Dataset::Dataset(const Spec& spec, bool named) : named_(named) {
    for (const Spec& item : spec.as_list()) {
        Part part;
        part.source = item.at("src").as_int();
        if (const Spec* name = item.find("name")) part.name = name->as_int();
        if (const Spec* graphs = item.find("graphs")) {
            part.stored = true;
            if (graphs->is_string()) {
                if (graphs->as_string() != "named") throw Error("plan: unknown graphs '" + graphs->as_string() + "'");
                part.all_named = true;
            } else {
                for (const Spec& graph : graphs->as_list()) part.graphs.push_back(graph.as_int());
            }
        } else if (part.source == 0) {
            throw Error("plan: a stored part of a dataset lacks its graphs");
        }
        parts_.push_back(std::move(part));
    }
}

namespace {

const Source& given_source(const Run& run, std::size_t number) {
    if (number >= run.sources.size()) throw Error("plan: source " + std::to_string(number) + " was not given");
    return *run.sources[number];
}

}  // namespace

const Source& Dataset::source(const Run& run, std::size_t part) const { return given_source(run, parts_[part].source); }

void Dataset::resolve(const Run& run, TermId predicate, TermId graph, std::vector<EdgeSet>& out) const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        source(run, i);
        resolve_part(run, parts_[i], predicate, graph, out);
    }
    sort_into_groups(out);
}

void Dataset::resolve_part(const Run& run, const Part& part, TermId predicate, TermId graph,
                           std::vector<EdgeSet>& out) const {
    std::vector<Label> labels;
    const Source& source = *run.sources[part.source];
    const auto number = static_cast<std::uint32_t>(part.source);
    if (!part.stored || part.graphs.empty()) {  // a window, or all named graphs
        if (!part.stored && predicate != 0) {
            if (Label label = run.labels.find(0, predicate); label != 0 && selected(part.name, graph))
                out.push_back({&source, label, number, predicate, named_ ? part.name : 0});
            return;
        }
        if (predicate != 0)
            run.labels.with_predicate(predicate, labels);
        else
            source.labels(labels);
        add_labels(run, part, labels, graph, out);
        return;
    }
    for (TermId stored : part.graphs) {
        if (!selected(name_of(part, stored), graph)) continue;
        if (predicate == 0) {
            labels.clear();
            run.labels.with_graph(stored, labels);
            add_labels(run, part, labels, graph, out);
        } else if (Label label = run.labels.find(stored, predicate)) {
            out.push_back({&source, label, number, predicate, named_ ? name_of(part, stored) : 0});
        }
    }
}

void Dataset::add_labels(const Run& run, const Part& part, std::span<const Label> labels, TermId graph,
                         std::vector<EdgeSet>& out) const {
    EdgeSet found;
    auto index = static_cast<std::size_t>(&part - parts_.data());
    for (Label label : labels)
        if (classify(run, index, label, graph, found)) out.push_back(found);
}

bool Dataset::classify(const Run& run, std::size_t index, Label label, TermId graph, EdgeSet& out) const {
    const Part& part = parts_[index];
    auto [stored, predicate] = run.labels.pair(label);
    if (!part.stored) {
        if (stored != 0) return false;
    } else if (part.all_named) {
        if (stored == 0) return false;
    } else if (std::find(part.graphs.begin(), part.graphs.end(), stored) == part.graphs.end()) {
        return false;
    }
    TermId name = name_of(part, stored);
    if (!selected(name, graph)) return false;
    out = {run.sources[part.source], label, static_cast<std::uint32_t>(part.source), predicate, named_ ? name : 0};
    return true;
}

bool Dataset::has_fixed_graphs() const {
    return std::none_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.all_named; });
}

std::size_t Dataset::fixed_labels() const {
    std::size_t labels = 0;
    for (const Part& part : parts_) labels += part.stored ? part.graphs.size() : 1;
    return labels;
}

void FixedEdges::resolve(const Run& run, const Dataset& dataset, TermId predicate) {
    if (renew(run)) return;
    sets_.clear();
    dataset.resolve(run, predicate, 0, sets_);
    settle(run, dataset, 1);
}

void FixedEdges::resolve(const Run& run, const Dataset& dataset, std::span<const Alternative> alternatives) {
    if (renew(run)) return;
    sets_.clear();
    std::vector<EdgeSet> found;
    for (const Alternative& alternative : alternatives) {
        found.clear();
        dataset.resolve(run, alternative.predicate, 0, found);
        for (EdgeSet& set : found) {
            set.predicate = alternatives.front().predicate;
            set.inverse = alternative.inverse;
            sets_.push_back(set);
        }
    }
    settle(run, dataset, alternatives.size());
}

/// Takes the sources of a run for sets that hold for its label table. False if the sets do not hold.
bool FixedEdges::renew(const Run& run) {
    if (labels_ != run.labels.identity()) return false;
    for (EdgeSet& set : sets_) set.source = &given_source(run, set.source_number);
    return true;
}

void FixedEdges::settle(const Run& run, const Dataset& dataset, std::size_t predicates) {
    const bool complete = dataset.has_fixed_graphs() && sets_.size() == predicates * dataset.fixed_labels();
    labels_ = complete ? run.labels.identity() : 0;
}

void Dataset::graph_names(const Run& run, std::vector<TermId>& out) const {
    std::size_t first = out.size();
    std::vector<Label> labels;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[i];
        if (part.name != 0) {
            out.push_back(part.name);
        } else if (part.all_named) {
            const Source& stored = source(run, i);
            labels.clear();
            stored.labels(labels);
            for (Label label : labels) {
                TermId graph = run.labels.graph(label);
                if (graph != 0 && stored.has_edges(label)) out.push_back(graph);
            }
        } else {
            for (TermId graph : part.graphs)
                if (graph != 0) out.push_back(graph);
        }
    }
    auto from = out.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(from, out.end());
    out.erase(std::unique(from, out.end()), out.end());
}

}  // namespace penstock::exec
