// Retained views, and the edges by which a view differs from an earlier one.
#include <algorithm>
#include <tuple>

#include "store/store_view.hpp"

namespace penstock {

namespace {

using Edges = std::span<const LabelledEdge>;

/// Which of the edges, all of one label, the source contains.
std::vector<std::uint8_t> contained(const Source& source, Edges edges) {
    std::vector<TermId> subjects, objects;
    for (const LabelledEdge& edge : edges) {
        subjects.push_back(edge.s);
        objects.push_back(edge.o);
    }
    std::vector<std::uint8_t> found(edges.size(), 0);
    source.contains(subjects, edges[0].label, objects, found);
    return found;
}

}  // namespace

std::shared_ptr<SnapshotSource::Retained> StoreView::retain() const {
    if (log_ == nullptr) return nullptr;
    // Readable: this view has a lease of the same snapshot.
    auto lease = history_.lease_at(visibility_.snapshot, visibility_.excluded);
    return log_->retain(std::make_shared<StoreView>(shards_, history_, std::move(lease), log_), visibility_.snapshot);
}

bool StoreView::changes_since(const Source& before, std::span<const Label> labels, std::size_t limit,
                              EdgeChanges& out) const {
    const auto* const earlier = dynamic_cast<const StoreView*>(&before);
    if (log_ == nullptr || earlier == nullptr || earlier->log_ != log_) return false;
    out.added.clear();
    out.removed.clear();
    std::vector<LabelledEdge> touched;
    if (!log_->touched(earlier->visibility_, visibility_, labels, limit, touched)) return false;
    const auto key = [](const LabelledEdge& edge) { return std::tie(edge.label, edge.s, edge.o); };
    std::ranges::sort(touched, {}, key);
    touched.erase(std::ranges::unique(touched, {}, key).begin(), touched.end());
    for (Edges rest = touched; !rest.empty();) {
        const Edges same = rest.first(static_cast<std::size_t>(
            std::ranges::find_if(rest, [&](auto& e) { return e.label != rest[0].label; }) - rest.begin()));
        const auto now = contained(*this, same), then = contained(before, same);
        for (std::size_t i = 0; i < same.size(); ++i)
            if (now[i] != then[i]) (now[i] != 0 ? out.added : out.removed).push_back(same[i]);
        rest = rest.subspan(same.size());
    }
    return true;
}

}  // namespace penstock
