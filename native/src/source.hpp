// The interface that the executor reads: the stored graph at a snapshot, or a stream's window. Each call processes a
// batch. There is therefore one virtual call for each operator and morsel, not for each row.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rdf/term.hpp"

namespace penstock {

/// An edge label: a (graph, predicate) pair, numbered from 1 by the LabelTable (31 bits). The default graph has graph
/// id 0. Windows do not distinguish graphs: the label of a window's edge is that of (0, predicate).
using Label = std::uint32_t;

enum class Dir : std::uint8_t { Out = 0, In = 1 };  // Out: subject -> objects; In: object -> subjects

struct LabelStats {
    std::uint64_t edges = 0;
    std::uint64_t subjects = 0;  // distinct
    std::uint64_t objects = 0;   // distinct
};

/// Pairs (index of the key in the request, neighbour), appended by expand().
struct Matches {
    std::vector<std::uint32_t> rows;
    std::vector<TermId> values;
    void clear() {
        rows.clear();
        values.clear();
    }
};

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

/// A set of labelled edges that does not change during one evaluation. Implementations: StoreView (store_view.hpp),
/// TimeWindow and CountWindow (window.hpp). The content is a *set*: no (s, label, o) occurs twice in one source.
class Source {
public:
    virtual ~Source() = default;

    /// For each i, appends (i, v) for every neighbour v of keys[i]. The pairs are in ascending order of i.
    virtual void expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const = 0;

    /// Sets found[i] |= 1 if the source contains the edge (subjects[i], label, objects[i]).
    virtual void contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                          std::span<std::uint8_t> found) const = 0;

    /// Appends each distinct vertex with at least one edge of the label: subjects for Out, objects for In.
    virtual void vertices(Label label, Dir dir, std::vector<TermId>& out) const = 0;

    /// Appends (i, label) for each label of which keys[i] has at least one edge in the given direction.
    virtual void labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                           std::vector<Label>& labels) const = 0;

    /// Appends every edge of the label.
    virtual void edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const = 0;

    /// Appends every label with at least one edge in this source. Other labels can be among them.
    virtual void labels(std::vector<Label>& out) const = 0;

    /// Whether the source has an edge of the label. Unlike labels() and stats(), the result is exact for each snapshot.
    virtual bool has_edges(Label label) const {
        std::vector<TermId> subjects;
        vertices(label, Dir::Out, subjects);
        return !subjects.empty();
    }

    virtual LabelStats stats(Label label) const = 0;
    /// Equals stats().edges. Sources override it where the count alone is cheaper.
    virtual std::uint64_t edge_count(Label label) const { return stats(label).edges; }
    virtual std::uint64_t degree(TermId vertex, Label label, Dir dir) const = 0;

    /// A number that identifies the content, across all sources: different contents have different versions. 0: not
    /// supported.
    virtual std::uint64_t version() const { return 0; }
    /// Appends, in ascending order, each i for which expand() possibly returns other neighbours of keys[i] than at
    /// `version`. For all other keys, expand() returns the same neighbours in the same order as at `version`. Returns
    /// false if the source has no record of that version.
    virtual bool changed_since(std::uint64_t /*version*/, std::span<const TermId> /*keys*/, Label, Dir,
                               std::vector<std::uint32_t>& /*rows*/) const {
        return false;
    }

    /// The latest event time (ms) of the tuple in a window; kNever if it is absent or the source is not a window.
    virtual std::int64_t latest(TermId, Label, TermId) const { return kNever; }
};

}  // namespace penstock
