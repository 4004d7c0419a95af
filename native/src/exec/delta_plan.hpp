// Rewrites the input of an operator into terms that compute its change from the changes of its sources (ADR 78, 81).
//
// The input must be a chain of scans, filters, extensions, projections, (NOT) EXISTS and OPTIONAL over the seed, or a
// UNION of such chains. As a multiset, a chain is a product of factors, one for each scan, each EXISTS test and each
// OPTIONAL. The change of a product is a sum of terms. In each term, one factor is replaced by its change. The factors
// before this factor read the present content of the sources, and the factors after it read the previous content (Gupta
// and Mumick, Maintenance of Materialized Views, 1995).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/compiler.hpp"

namespace penstock::exec {

/// The source numbers of rewritten plans. First come the sources of the plan, then the previous contents of the same
/// sources, and then one source for the change of each union.
struct DeltaSources {
    std::size_t count = 0;  // of the plan's sources, that of the stored graph included
    std::size_t before(std::size_t source) const { return count + source; }
    std::size_t changed(std::size_t set) const { return 2 * count + set; }
};

/// The input of scans: the union, as a set, of one or more sources. A union of several sources reads the default graph.
struct DeltaUnion {
    std::vector<std::size_t> sources;  // ascending; 0 is the stored graph
    std::vector<TermId> predicates;    // that the scans look up
    bool any_predicate = false;        // or all; not with the stored graph
};

/// One term of the sum.
struct DeltaTerm {
    /// A term of a scan is executed twice: first `changed()` of its union is the added edges (sign +1), then the
    /// removed edges (sign -1). A term of an EXISTS test or an OPTIONAL has two plans, for all rows whose test has
    /// possibly changed: `node` gives the present matches (sign +1), and `before` gives the matches before the change
    /// (sign -1). In these plans, `changed()` of the test's unions is all added and removed edges.
    Spec node;
    Spec before;                      // null for a scan's term
    std::vector<std::size_t> unions;  // without changes of these, the term is empty
    /// Set if a term of a test needs only a part of the changed edges. Gained: `node` has the rows that have gained a
    /// first match, and `changed()` is only the added edges. Lost: `node` has the rows that have lost the last match,
    /// and `changed()` is only the removed edges. For `before`, it is the reverse.
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
