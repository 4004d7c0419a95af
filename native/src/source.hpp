// What the executor reads: one interface over the stored graph at a snapshot, and over a stream's window.
// Every call works on a batch, so the virtual call is paid per operator and morsel, never per row.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rdf/term.hpp"

namespace penstock {

/// An edge label: a (graph, predicate) pair, numbered from 1 by the LabelTable (31 bits). The default graph is graph id
/// 0. Windows have no graph of their own: a window's label is that of (0, predicate).
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

/// A set of labelled edges, fixed for the time of one evaluation. Implementations: StoreView (store_view.hpp),
/// TimeWindow and CountWindow (window.hpp). Content is a *set*: no (s, label, o) appears twice in one source.
class Source {
public:
    virtual ~Source() = default;

    /// For each i, appends (i, v) for every neighbour v of keys[i]; pairs come in ascending order of i.
    virtual void expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const = 0;

    /// found[i] |= 1 where the edge (subjects[i], label, objects[i]) is there.
    virtual void contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                          std::span<std::uint8_t> found) const = 0;

    /// Appends each distinct vertex with at least one edge of that label: subjects for Out, objects for In.
    virtual void vertices(Label label, Dir dir, std::vector<TermId>& out) const = 0;

    /// Appends (i, label) for each label on which keys[i] has at least one edge in that direction.
    virtual void labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                           std::vector<Label>& labels) const = 0;

    /// Appends every edge of that label.
    virtual void edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const = 0;

    /// Appends every label with at least one edge in this source (a superset is allowed).
    virtual void labels(std::vector<Label>& out) const = 0;

    virtual LabelStats stats(Label label) const = 0;
    /// stats().edges, where that is all that is asked for.
    virtual std::uint64_t edge_count(Label label) const { return stats(label).edges; }
    virtual std::uint64_t degree(TermId vertex, Label label, Dir dir) const = 0;

    /// Another one whenever the content is another one, of whatever source; 0: this source does not say.
    virtual std::uint64_t version() const { return 0; }
    /// Appends, ascending, each i for which expand() may give other neighbours of keys[i] than it gave at that version;
    /// the others' are the same, in the same order. False where nothing is known about so old a version.
    virtual bool changed_since(std::uint64_t /*version*/, std::span<const TermId> /*keys*/, Label, Dir,
                               std::vector<std::uint32_t>& /*rows*/) const {
        return false;
    }

    /// Latest event time (ms) of that tuple in a window; kNever where it is absent or the source is not a window.
    virtual std::int64_t latest(TermId, Label, TermId) const { return kNever; }
};

}  // namespace penstock
