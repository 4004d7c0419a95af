// Batched look-ups over unions of edge sets (set union, as in SPARQL's datasets): exploration steps of Wukong (OSDI'16
// §5).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/charge.hpp"
#include "exec/dataset.hpp"
#include "exec/key_table.hpp"

namespace penstock::exec {

/// Look-ups in one group of edge sets (equal predicate and graph). `dir`, subjects and objects are those of the
/// matches; an inverse set is read in the other direction. Reuses its buffers from call to call.
class Lookup {
public:
    /// Returns (index of the key, neighbour), ascending by index. A neighbour in several sets occurs once per key.
    /// Equal keys are looked up only once, if this limits the work. The result is in `buffer`, whose content is
    /// replaced, or in the lookup memo. It is valid until the run ends.
    const Matches& expand(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys, Dir dir,
                          Matches& buffer);
    /// Sets found[i] = 1 if some set contains (subjects[i], objects[i]).
    void contains(Run& run, std::span<const EdgeSet> group, std::span<const TermId> subjects,
                  std::span<const TermId> objects, std::vector<std::uint8_t>& found);
    /// Sets `subjects` and `objects` to all distinct edges of the group.
    void pairs(Run& run, std::span<const EdgeSet> group, Column& subjects, Column& objects);

    void release(Run& run);

private:
    const Matches& expand_distinct(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys, Dir dir,
                                   Matches& buffer);
    const Matches& expand_inverse(Run& run, const EdgeSet& edges, std::span<const TermId> keys, Dir dir,
                                  Matches& buffer);
    void contains_each(Run& run, std::span<const EdgeSet> group, std::span<const TermId> subjects,
                       std::span<const TermId> objects, std::vector<std::uint8_t>& found);
    void merge(std::size_t sets, Matches& found);
    bool fold_keys(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys);
    void unfold(const Matches& folded, Matches& found);
    void charge(Run& run, std::size_t bytes);

    bool holds_ = false;  // whether release() has anything to free
    Charge charge_;
    Matches folded_;
    std::vector<TermId> distinct_keys_;
    std::vector<std::uint32_t> key_of_row_;
    std::vector<std::size_t> starts_;
    std::vector<Matches> parts_;
    std::vector<std::size_t> heads_;
    std::vector<std::uint8_t> in_set_;
    KeyTable seen_;
};

/// Finds the labels of each key, for patterns whose predicate is a variable.
class LabelProbe {
public:
    struct Found {
        EdgeSet edges;
        std::vector<std::uint32_t> keys;  // indices, ascending
    };
    /// Looks up the labels of each key in the dataset, for the predicate (0: any predicate) in the graph (0: all
    /// graphs). The edge sets that were found are in groups.
    void probe(Run& run, const Dataset& dataset, std::span<const TermId> keys, Dir dir, TermId predicate, TermId graph);

    std::size_t size() const { return order_.size(); }
    /// Sets `edges` to the group that starts at position i, and `keys` to the keys that occur in any of its sets.
    /// Returns the position after the group.
    std::size_t group(std::size_t i, std::vector<EdgeSet>& edges, std::vector<std::uint32_t>& keys) const;

private:
    Found& entry(const EdgeSet& edges);
    std::vector<Found> found_;  // the first used_ belong to this probe
    std::size_t used_ = 0;
    std::vector<std::uint32_t> order_, rows_;
    std::vector<std::uint32_t> entry_of_label_;
    std::vector<Label> labels_;
};

}  // namespace penstock::exec
