// Rewrites the input of an operator into terms that compute its change from the changes of its sources (ADR 78, 81).
//
// The input must be a chain of scans, filters, extensions, projections, (NOT) EXISTS and OPTIONAL over the seed, or a
// UNION of such chains. As a multiset, a chain is a product of factors, one for each scan, each EXISTS test and each
// OPTIONAL. The change of a product is a sum of terms, in each of which one factor is replaced by its change, the
// factors before it read the present content of the sources, and those after it the previous content (Gupta and Mumick,
// Maintenance of Materialized Views, 1995).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/compiler.hpp"

namespace penstock::exec {

/// Source numbers of rewritten plans: those of the plan, the same for the previous contents, and one for the change of
/// each union.
struct DeltaSources {
    std::size_t count = 0;  // of the plan's sources, that of the stored graph included
    std::size_t before(std::size_t source) const { return count + source; }
    std::size_t changed(std::size_t set) const { return 2 * count + set; }
};

/// What scans read: the union, as a set, of one or more sources. A union of several reads the default graph.
struct DeltaUnion {
    std::vector<std::size_t> sources;  // ascending; 0 is the stored graph
    std::vector<TermId> predicates;    // that the scans look up
    bool any_predicate = false;        // or all; not with the stored graph
};

/// One term of the sum.
struct DeltaTerm {
    /// A term of a scan: `changed()` of its union is first what was added (sign +1), then what was removed (-1).
    /// A term of an EXISTS test or an OPTIONAL: `node` has the present matches (+1), `before` those before the change
    /// (-1), of all rows whose test may have changed; `changed()` of the test's unions is all that was added or
    /// removed.
    Spec node;
    Spec before;                      // null for a scan's term
    std::vector<std::size_t> unions;  // without changes of these, the term is empty
    /// What `changed()` is for `node` if a term of a test needs less than all changed edges: what was added if `node`
    /// has rows that gained a first match, or what was removed if it has rows that lost the last one. For `before`, it
    /// is the reverse.
    enum class Crossing : std::uint8_t { No, Gained, Lost } crossing = Crossing::No;
};

struct DeltaPlan {
    DeltaSources sources;
    std::vector<DeltaUnion> unions;
    std::vector<Slot> computed;    // slots whose values expressions compute
    std::vector<DeltaTerm> terms;  // empty: the input cannot be maintained
};

/// `input`: a node of a plan. `output`: the slots of its rows, in order.
DeltaPlan delta_plan(const Spec& input, const std::vector<Slot>& seed, const std::vector<Slot>& output);

}  // namespace penstock::exec
