// Batched look-ups over unions of edge sets: exploration steps of Wukong (OSDI'16 §5), with SPARQL's set union of
// datasets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/charge.hpp"
#include "exec/dataset.hpp"
#include "exec/key_table.hpp"

namespace penstock::exec {

/// Look-ups in one group of edge sets (equal predicate and graph). Keeps its buffers from call to call.
class Lookup {
public:
    /// Returns (index of the key, neighbour), ascending by index; a neighbour that several sets give comes once per
    /// key. Equal keys are looked up once where that bounds the work. They are in `buffer` (what it had is gone), or
    /// noted elsewhere until the run ends.
    const Matches& expand(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys, Dir dir,
                          Matches& buffer);
    /// found[i] = 1 where some set holds (subjects[i], objects[i]).
    void contains(Run& run, std::span<const EdgeSet> group, std::span<const TermId> subjects,
                  std::span<const TermId> objects, std::vector<std::uint8_t>& found);
    /// All distinct edges of the group.
    void pairs(Run& run, std::span<const EdgeSet> group, Column& subjects, Column& objects);

    void release(Run& run);

private:
    const Matches& expand_distinct(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys, Dir dir,
                                   Matches& buffer);
    void merge(std::size_t sets, Matches& found);
    bool fold_keys(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys);
    void unfold(const Matches& folded, Matches& found);
    void charge(Run& run, std::size_t bytes);

    bool holds_ = false;  // something that release() gives back
    Charge charge_;
    Matches folded_;
    std::vector<TermId> distinct_keys_;
    std::vector<std::uint32_t> key_of_row_;
    std::vector<std::size_t> starts_;
    std::vector<Matches> parts_;
    std::vector<std::size_t> heads_;
    KeyTable seen_;
};

/// Finds the labels at each key, for patterns whose predicate is a variable.
class LabelProbe {
public:
    struct Found {
        EdgeSet edges;
        std::vector<std::uint32_t> keys;  // indices, ascending
    };
    /// Looks up each key's labels in the dataset, of that predicate (0 = any) and in the graph of that name (0 = all).
    /// Found edge sets come grouped.
    void probe(Run& run, const Dataset& dataset, std::span<const TermId> keys, Dir dir, TermId predicate, TermId graph);

    std::size_t size() const { return order_.size(); }
    /// Leaves in `edges` the group that begins at position i, and in `keys` the keys that any of its sets holds;
    /// returns the position after it.
    std::size_t group(std::size_t i, std::vector<EdgeSet>& edges, std::vector<std::uint32_t>& keys) const;

private:
    Found& entry(const EdgeSet& edges);
    std::vector<Found> found_;  // the first used_ are this probe's
    std::size_t used_ = 0;
    std::vector<std::uint32_t> order_, rows_;
    std::vector<std::uint32_t> entry_of_label_;
    std::vector<Label> labels_;
};

}  // namespace penstock::exec
