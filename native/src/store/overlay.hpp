// The stored graph with the changes of an update that is not committed yet (ADR 70).
#pragma once

#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "store/commit.hpp"

namespace penstock {

/// A source of the edges of `base`, without the removed edges and with the added edges. It holds only the difference to
/// `base`. The addition of an edge of `base`, and the removal of an added edge, therefore leave no trace. Changes
/// require external synchronisation with reads. `base` must outlive the overlay.
class Overlay : public Source {
public:
    explicit Overlay(const Source& base) : base_(base) {}

    void add(std::span<const Edge> edges);
    void remove(std::span<const Edge> edges);
    std::vector<Edge> added() const;    // not in `base`
    std::vector<Edge> removed() const;  // in `base`

    void expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const override;
    void contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                  std::span<std::uint8_t> found) const override;
    void vertices(Label label, Dir dir, std::vector<TermId>& out) const override;
    void labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                   std::vector<Label>& labels) const override;
    void edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const override;
    void labels(std::vector<Label>& out) const override;
    bool has_edges(Label label) const override;
    LabelStats stats(Label label) const override;  // edges are exact, vertices an estimate
    std::uint64_t degree(TermId vertex, Label label, Dir dir) const override;

private:
    /// Edges in both directions, with the labels of each vertex.
    class Edges {
    public:
        bool insert(const Edge& edge);
        bool erase(const Edge& edge);
        bool has(TermId subject, Label label, TermId object) const;
        const std::set<TermId>& neighbours(TermId vertex, Label label, Dir dir) const;
        const std::set<Label>& labels(TermId vertex, Dir dir) const;
        std::uint64_t count(Label label) const;
        /// Calls visit(vertex, its neighbours) in ascending order of the vertices.
        template <class Visit>
        void for_each(Label label, Dir dir, Visit visit) const {
            const Lists& lists = lists_[static_cast<std::size_t>(dir)];
            for (auto at = lists.lower_bound({label, 0}); at != lists.end() && at->first.first == label; ++at)
                visit(at->first.second, at->second);
        }
        const std::map<Label, std::uint64_t>& counts() const { return counts_; }
        void append(std::vector<Edge>& out) const;

    private:
        using Lists = std::map<std::pair<Label, TermId>, std::set<TermId>>;
        void link(TermId from, Label label, TermId to, Dir dir);
        void unlink(TermId from, Label label, TermId to, Dir dir);

        std::array<Lists, 2> lists_;
        std::array<std::map<TermId, std::set<Label>>, 2> labels_;
        std::map<Label, std::uint64_t> counts_;
    };

    bool changed(Label label) const { return added_.count(label) != 0 || removed_.count(label) != 0; }
    bool base_has(const Edge& edge) const;

    const Source& base_;
    Edges added_, removed_;
};

}  // namespace penstock
