// Labels of (graph, predicate) pairs, for columns in which a few pairs repeat.
#pragma once

#include <array>

#include "mix.hpp"
#include "store/labels.hpp"

namespace penstock {

/// Caches the most recent labels by a hash of the pair, so that most rows do not search the table.
class EdgeLabels {
public:
    explicit EdgeLabels(LabelTable& labels) : labels_(labels) {}

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
    struct Known {
        TermId graph = 0, predicate = 0;
        Label label = 0;
    };
    Known& place_of(TermId graph, TermId predicate) {
        Known& at = known_[mix(graph * 3 + predicate) >> 56];
        if (at.graph != graph || at.predicate != predicate) at = {graph, predicate, 0};
        return at;
    }

    LabelTable& labels_;
    std::array<Known, 256> known_{};
};

}  // namespace penstock
