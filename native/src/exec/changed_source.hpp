// Two sources that maintained operators read (ADR 78): the change of a source, and the content of a source before the
// change.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "changing_source.hpp"

namespace penstock::exec {

/// A source that consists of listed edges. It indexes a direction at the first look-up in this direction.
class EdgeList final : public Source {
public:
    /// Sets the content to the edges of both lists. The lists must live until the next call. An edge can occur several
    /// times.
    void assign(std::span<const LabelledEdge> first, std::span<const LabelledEdge> second = {});
    std::size_t size() const { return parts_[0].size() + parts_[1].size(); }

    /// The edges of a vertex, ascending by neighbour, each once.
    struct Link {
        Label label;
        TermId vertex, neighbour;
    };
    std::span<const Link> links(TermId vertex, Label label, Dir dir) const;
    bool has(TermId subject, Label label, TermId object) const;

    void expand(std::span<const TermId>, Label, Dir, Matches&) const override;
    void contains(std::span<const TermId>, Label, std::span<const TermId>, std::span<std::uint8_t>) const override;
    void vertices(Label, Dir, std::vector<TermId>&) const override;
    void labels_of(std::span<const TermId>, Dir, std::vector<std::uint32_t>&, std::vector<Label>&) const override;
    void edges(Label, std::vector<TermId>&, std::vector<TermId>&) const override;
    void labels(std::vector<Label>&) const override;
    LabelStats stats(Label) const override;
    std::uint64_t edge_count(Label) const override;
    std::uint64_t degree(TermId, Label, Dir) const override;

private:
    /// The edges of a vertex in the index. Size 0: a free place.
    struct Range {
        std::uint32_t first = 0, size = 0;
    };
    struct Index {
        bool made = false;
        std::vector<Link> links;
        std::vector<Range> ranges;        // hash table
        std::vector<std::uint32_t> used;  // its places that are not free
        std::size_t place_of(TermId vertex, Label label, const std::vector<Link>& links) const;
        std::span<const Link> links_of(Range range) const { return {links.data() + range.first, range.size}; }
    };
    void index(Dir dir) const;
    template <class Visit>
    void each_range(Label label, Dir dir, Visit visit) const;

    std::span<const LabelledEdge> parts_[2];
    mutable Index index_[2];
    // Scratch of index().
    mutable std::vector<Link> unordered_;
    mutable std::vector<std::uint32_t> places_;
};

/// The content of a source before a change: without the edges that the change added, and with the edges that it
/// removed.
class PreviousSource final : public Source {
public:
    /// `now`: a window, whose labels_of() goes through the keys in order.
    void assign(const Source& now, const EdgeList& added, const EdgeList& removed);

    void expand(std::span<const TermId>, Label, Dir, Matches&) const override;
    void contains(std::span<const TermId>, Label, std::span<const TermId>, std::span<std::uint8_t>) const override;
    void vertices(Label, Dir, std::vector<TermId>&) const override;
    void labels_of(std::span<const TermId>, Dir, std::vector<std::uint32_t>&, std::vector<Label>&) const override;
    void edges(Label, std::vector<TermId>&, std::vector<TermId>&) const override;
    void labels(std::vector<Label>&) const override;  // a superset
    LabelStats stats(Label) const override;           // vertices: as they are now
    std::uint64_t degree(TermId, Label, Dir) const override;

private:
    const Source* now_ = nullptr;
    const EdgeList* added_ = nullptr;
    const EdgeList* removed_ = nullptr;
};

}  // namespace penstock::exec
