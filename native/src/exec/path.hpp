// Property paths (SPARQL 1.1 §9, §18.4) as batched expansion of a frontier.
#pragma once

#include <memory>
#include <vector>

#include "exec/lookup.hpp"
#include "spec.hpp"

namespace penstock::exec {

struct PathExpression {
    enum class Kind : std::uint8_t { Link, Inverse, Sequence, Alternative, Star, Plus, Optional, Negated };
    Kind kind;
    TermId predicate = 0;               // of a Link
    std::vector<PathExpression> parts;  // of all other kinds
    std::unique_ptr<std::vector<TermId>>
        forward;  // Negated: excluded predicates, sorted; null = that direction never matches
    std::unique_ptr<std::vector<TermId>> inverse;

    explicit PathExpression(const Spec& spec, std::size_t depth = 0);
    /// Whether a path of length zero matches.
    bool nullable() const;
};

/// Evaluates paths over one graph: the union of a dataset's parts, or the graph of one name.
class PathEvaluator {
public:
    explicit PathEvaluator(const Dataset& dataset) : dataset_(dataset) {}
    void begin(Run& run, TermId graph);
    void release(Run& run) { lookup_.release(run); }

    /// Whether the end of the keys, and the other end, are terms of the query and not variables. If both ends are
    /// variables, a path of length zero matches only nodes of the graph. A term matches itself, even if it is not in
    /// the graph (§18.4).
    struct Ends {
        bool near_term = false;
        bool far_term = false;
    };
    /// Sets `found` to pairs (index of the key, node at the other end), in no order. Sequences and alternatives outside
    /// of closures retain duplicates. `dir` Out: the keys are the path's start; In: its end.
    void step(const PathExpression& path, std::span<const TermId> keys, Dir dir, Ends ends, Matches& found);
    /// Appends a superset of the nodes at which the path starts in the graph, each once. If the path can have length
    /// zero, these are all subjects and objects.
    void starts(const PathExpression& path, std::vector<TermId>& out);

private:
    void link(TermId predicate, std::span<const TermId> keys, Dir dir, Matches& found);
    void sequence(const PathExpression& path, std::span<const TermId> keys, Dir dir, Ends ends, Matches& found);
    /// One or more steps from each key.
    void closure(const PathExpression& path, std::span<const TermId> keys, Dir dir, Ends ends, Matches& found);
    /// Adds the paths of length zero to `found` and removes duplicates.
    void add_zero_length(std::span<const TermId> keys, Ends ends, Matches& found);
    void mark_nodes(std::span<const TermId> keys, std::vector<std::uint8_t>& found);
    void negated(const std::vector<TermId>& excluded, std::span<const TermId> keys, Dir dir, Matches& found);
    void collect_starts(const PathExpression& path, Dir dir, KeyTable& seen);
    void add_vertices(std::span<const EdgeSet> sets, Dir dir, KeyTable& seen);

    const Dataset& dataset_;
    Run* run_ = nullptr;
    TermId graph_ = 0;
    Lookup lookup_;
    std::vector<EdgeSet> sets_;
};

}  // namespace penstock::exec
