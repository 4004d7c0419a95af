// Sources that report how their content has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "source.hpp"

namespace penstock {

struct LabelledEdge {
    Label label;
    TermId s, o;
};

/// The change of a source's content from one version to the next one. An edge that was removed and then added again is
/// in both lists.
struct EdgeChanges {
    std::uint64_t from = 0, to = 0;  // versions
    std::uint64_t sweeps = 0;        // dictionary_sweeps() at the change; a later sweep can drop terms of `removed`
    std::vector<LabelledEdge> added, removed;
};

class ChangingSource : public Source {
public:
    /// The change from the previous version to the present version; null if this change is not recorded. A call also
    /// requests that the source records its next changes. The result is valid until the content changes.
    virtual const EdgeChanges* changes() const = 0;
};

/// A source whose content an operator can retain, to compare it with a later content: the stored graph.
class SnapshotSource : public Source {
public:
    class Retained {
    public:
        virtual ~Retained() = default;
        /// Null if the content has been released, because too much has changed since.
        virtual std::shared_ptr<const Source> get() const = 0;
    };
    /// Null if this source cannot retain its content.
    virtual std::shared_ptr<Retained> retain() const = 0;
    /// Sets the edges that were added and removed since `before`, a retained content of the same graph, for the labels
    /// in `labels` (ascending). Returns false if these edges are unknown, or if more than `limit` edges have to be
    /// compared.
    virtual bool changes_since(const Source& before, std::span<const Label> labels, std::size_t limit,
                               EdgeChanges& out) const = 0;
};

}  // namespace penstock
