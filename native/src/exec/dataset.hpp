// The edges that a pattern reads: the dataset `D` of docs/plan-format.md, resolved to labels of sources.
#pragma once

#include <span>
#include <vector>

#include "exec/operator.hpp"
#include "spec.hpp"

namespace penstock::exec {

/// The edges of one label in one source. `graph` is the value of the graph variable, 0 if the pattern has none.
struct EdgeSet {
    const Source* source;
    Label label;
    std::uint32_t source_number;  // of the plan
    TermId predicate;
    TermId graph;
    /// Matched from object to subject: its edge (o, p, s) is a match (s, o). A literal as s is no match.
    bool inverse = false;
    bool same_group(const EdgeSet& other) const { return predicate == other.predicate && graph == other.graph; }
};

/// A predicate of a pattern with alternative predicates.
struct Alternative {
    TermId predicate;
    bool inverse;  // see EdgeSet
};

/// Sorts the sets so that sets with the same predicate and graph are adjacent. Such sets form a group. A pattern
/// matches the union of a group, as a set.
void sort_into_groups(std::vector<EdgeSet>& sets);
/// The first group of `sets`.
std::span<const EdgeSet> first_group(std::span<const EdgeSet> sets);

class Dataset {
public:
    /// `named`: whether the pattern has a graph variable. If it has, parts without a name are omitted.
    Dataset(const Spec& spec, bool named);

    /// Appends the edge sets of the predicate (0: any predicate) in the graph (0: all graphs), in groups.
    void resolve(const Run& run, TermId predicate, TermId graph, std::vector<EdgeSet>& out) const;

    /// Whether the set of graphs is fixed. If it is, a fixed predicate has the same labels in every run, as soon as all
    /// these labels exist.
    bool has_fixed_graphs() const;
    /// The number of labels of a fixed predicate in that case.
    std::size_t fixed_labels() const;

    /// parts() and classify() are for predicates that are found for each vertex: the parts to look up, and the meaning
    /// of a label of a part's source in this dataset.
    std::size_t parts() const { return parts_.size(); }
    const Source& source(const Run& run, std::size_t part) const;
    std::uint32_t source_number(std::size_t part) const { return static_cast<std::uint32_t>(parts_[part].source); }
    /// Returns false if the part does not contain the label, or does not contain it under the requested graph name.
    bool classify(const Run& run, std::size_t part, Label label, TermId graph, EdgeSet& out) const;

    /// Appends the names of the dataset's graphs, each once. For a "named" part, these are the graphs with a triple in
    /// the stored graph.
    void graph_names(const Run& run, std::vector<TermId>& out) const;

private:
    struct Part {
        std::size_t source;
        bool stored = false;  // else a window
        bool all_named = false;
        std::vector<TermId> graphs;  // stored graphs; empty for windows
        TermId name = 0;
    };
    void resolve_part(const Run& run, const Part& part, TermId predicate, TermId graph,
                      std::vector<EdgeSet>& out) const;
    void add_labels(const Run& run, const Part& part, std::span<const Label> labels, TermId graph,
                    std::vector<EdgeSet>& out) const;
    /// The value of a graph variable for the given stored graph (or window: 0) of the part; 0 = no match.
    TermId name_of(const Part& part, TermId stored) const { return part.name != 0 ? part.name : stored; }
    bool selected(TermId name, TermId graph) const { return !named_ || (name != 0 && (graph == 0 || graph == name)); }

    std::vector<Part> parts_;
    bool named_;
};

/// The edge sets of fixed predicates in all graphs of a dataset. Labels are permanent. As soon as each label exists,
/// the resolved labels are valid for all later runs with the same label table. Only the sources differ from run to run.
class FixedEdges {
public:
    void resolve(const Run& run, const Dataset& dataset, TermId predicate);
    /// The sets of all alternatives become one group. The dataset has no graph variable.
    void resolve(const Run& run, const Dataset& dataset, std::span<const Alternative> alternatives);
    std::span<const EdgeSet> sets() const { return sets_; }
    /// Whether the sets are valid for all later runs with the same label table.
    bool settled() const { return labels_ != 0; }

private:
    bool renew(const Run& run);
    void settle(const Run& run, const Dataset& dataset, std::size_t predicates);

    std::uint64_t labels_ = 0;  // identity of the label table that `sets_` holds for; 0: none
    std::vector<EdgeSet> sets_;
};

}  // namespace penstock::exec
