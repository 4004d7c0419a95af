// Edges from columns of quads, and the labels of (graph, predicate) pairs, of which a few repeat.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "mix.hpp"
#include "store/commit.hpp"
#include "store/labels.hpp"

namespace penstock {

/// Caches the most recent labels by a hash of the pair, so that most rows do not search the table.
class EdgeLabels {
public:
    /// `rows`: about how many pairs are looked up. For a few, a large cache costs more than it saves.
    explicit EdgeLabels(LabelTable& labels, std::size_t rows = kMany)
        : labels_(labels), shift_(rows < kMany ? 62 : 56), known_(std::size_t{1} << (64 - shift_)) {}

    /// Returns the label of a pair. A new pair gets a label.
    Label operator()(TermId graph, TermId predicate) {
        Known& at = place_of(graph, predicate);
        if (at.label == 0) at.label = labels_.intern(graph, predicate);
        return at.label;
    }

    /// Returns the label of a pair; 0 if it has none.
    Label find(TermId graph, TermId predicate) {
        Known& at = place_of(graph, predicate);
        if (at.label == 0) at.label = labels_.find(graph, predicate);
        return at.label;
    }

private:
    static constexpr std::size_t kMany = 64;
    struct Known {
        TermId graph = 0, predicate = 0;
        Label label = 0;
    };
    Known& place_of(TermId graph, TermId predicate) {
        Known& at = known_[mix(graph * 3 + predicate) >> shift_];
        if (at.graph != graph || at.predicate != predicate) at = {graph, predicate, 0};
        return at;
    }

    LabelTable& labels_;
    unsigned shift_;
    std::vector<Known> known_;
};

/// Columns of equal length.
struct QuadSpans {
    std::span<const TermId> s, p, o, g;
};

/// The edges of quads. New (graph, predicate) pairs get labels.
inline std::vector<Edge> make_edges(LabelTable& table, const QuadSpans& quads) {
    const std::size_t n = quads.s.size();
    EdgeLabels labels(table, n);
    std::vector<Edge> edges(n);
    for (std::size_t i = 0; i < n; ++i) edges[i] = {quads.s[i], labels(quads.g[i], quads.p[i]), quads.o[i]};
    return edges;
}

/// The edges whose label exists. Others cannot be stored.
inline std::vector<Edge> known_edges(LabelTable& table, const QuadSpans& quads) {
    const std::size_t n = quads.s.size();
    EdgeLabels labels(table, n);
    std::vector<Edge> edges;
    edges.reserve(n);
    for (std::size_t i = 0; i < n; ++i)
        if (const Label label = labels.find(quads.g[i], quads.p[i]); label != 0)
            edges.push_back({quads.s[i], label, quads.o[i]});
    return edges;
}

}  // namespace penstock
