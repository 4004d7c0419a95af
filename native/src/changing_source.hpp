// Sources that tell how their content has changed.
#pragma once

#include <cstdint>
#include <vector>

#include "source.hpp"

namespace penstock {

struct LabelledEdge {
    Label label;
    TermId s, o;
};

/// The change of a source's content from one version to the next one. An edge that left and came back is in both lists.
struct EdgeChanges {
    std::uint64_t from = 0, to = 0;  // versions
    std::uint64_t sweeps = 0;        // dictionary_sweeps() at the change: a later sweep may drop terms of `removed`
    std::vector<LabelledEdge> added, removed;
};

class ChangingSource : public Source {
public:
    /// The change from the previous version to the present one; null if it is not recorded. A call requests that the
    /// source records its next changes. Valid until the content changes.
    virtual const EdgeChanges* changes() const = 0;
};

}  // namespace penstock
