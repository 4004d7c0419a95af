#include "exec/changed_source.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "exec/kernels.hpp"

namespace penstock::exec {

namespace {

using Link = EdgeList::Link;

auto key(const Link& link) { return std::tie(link.label, link.vertex, link.neighbour); }

void sort_unique(std::vector<TermId>& ids, std::size_t first) {
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(from, ids.end());
    ids.erase(std::unique(from, ids.end()), ids.end());
}

bool among(std::span<const Link> links, TermId neighbour) {
    return std::ranges::binary_search(links, neighbour, {}, &Link::neighbour);
}

}  // namespace

// ---- EdgeList

void EdgeList::assign(std::span<const LabelledEdge> first, std::span<const LabelledEdge> second) {
    parts_[0] = first;
    parts_[1] = second;
    indexed_[0] = indexed_[1] = false;
}

const std::vector<Link>& EdgeList::index(Dir dir) const {
    const int d = static_cast<int>(dir);
    if (indexed_[d]) return index_[d];
    std::vector<Link>& links = index_[d];
    links.clear();
    for (const auto& part : parts_) {
        for (const LabelledEdge& edge : part) {
            if (dir == Dir::Out)
                links.push_back({edge.label, edge.s, edge.o});
            else
                links.push_back({edge.label, edge.o, edge.s});
        }
    }
    std::ranges::sort(links, {}, key);
    links.erase(std::ranges::unique(links, {}, key).begin(), links.end());
    std::vector<Range>& ranges = ranges_[d];
    ranges.assign(std::bit_ceil(std::max<std::size_t>(2 * links.size(), 16)), Range{});
    for (std::uint32_t first = 0, end = 0; first < links.size(); first = end) {
        const auto [label, vertex, neighbour] = links[first];
        while (end < links.size() && links[end].label == label && links[end].vertex == vertex) ++end;
        std::size_t at = combine(label, vertex) & (ranges.size() - 1);
        while (ranges[at].size != 0) at = (at + 1) & (ranges.size() - 1);
        ranges[at] = {first, end - first};
    }
    indexed_[d] = true;
    return links;
}

std::span<const Link> EdgeList::links(TermId vertex, Label label, Dir dir) const {
    const std::vector<Link>& index = this->index(dir);
    const std::vector<Range>& ranges = ranges_[static_cast<int>(dir)];
    for (std::size_t at = combine(label, vertex) & (ranges.size() - 1); ranges[at].size != 0;
         at = (at + 1) & (ranges.size() - 1)) {
        const std::span<const Link> found(index.data() + ranges[at].first, ranges[at].size);
        if (found.front().vertex == vertex && found.front().label == label) return found;
    }
    return {};
}

std::span<const Link> EdgeList::of_label(Label label, Dir dir) const {
    return std::ranges::equal_range(index(dir), label, {}, &Link::label);
}

bool EdgeList::has(TermId subject, Label label, TermId object) const {
    return size() != 0 && among(links(subject, label, Dir::Out), object);
}

void EdgeList::expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const {
    for (std::size_t i = 0; i < keys.size(); ++i) {
        for (const Link& link : links(keys[i], label, dir)) {
            out.rows.push_back(static_cast<std::uint32_t>(i));
            out.values.push_back(link.neighbour);
        }
    }
}

void EdgeList::contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                        std::span<std::uint8_t> found) const {
    for (std::size_t i = 0; i < subjects.size(); ++i)
        if (has(subjects[i], label, objects[i])) found[i] |= 1;
}

void EdgeList::vertices(Label label, Dir dir, std::vector<TermId>& out) const {
    const std::size_t first = out.size();
    for (const Link& link : of_label(label, dir)) out.push_back(link.vertex);
    sort_unique(out, first);
}

void EdgeList::labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                         std::vector<Label>& labels) const {
    std::vector<Label> all;
    this->labels(all);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        for (const Label label : all) {
            if (links(keys[i], label, dir).empty()) continue;
            rows.push_back(static_cast<std::uint32_t>(i));
            labels.push_back(label);
        }
    }
}

void EdgeList::edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const {
    if (parts_[1].empty()) {  // each edge once, so no index is needed
        for (const LabelledEdge& edge : parts_[0]) {
            if (edge.label != label) continue;
            subjects.push_back(edge.s);
            objects.push_back(edge.o);
        }
        return;
    }
    for (const Link& link : of_label(label, Dir::Out)) {
        subjects.push_back(link.vertex);
        objects.push_back(link.neighbour);
    }
}

void EdgeList::labels(std::vector<Label>& out) const {
    const std::size_t first = out.size();
    for (const auto& part : parts_)
        for (const LabelledEdge& edge : part)
            if (out.size() == first || out.back() != edge.label) out.push_back(edge.label);
    const auto from = out.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(from, out.end());
    out.erase(std::unique(from, out.end()), out.end());
}

LabelStats EdgeList::stats(Label label) const {
    const std::uint64_t edges = edge_count(label);
    return {edges, edges, edges};
}

std::uint64_t EdgeList::edge_count(Label label) const {
    std::uint64_t count = 0;
    for (const auto& part : parts_)
        count += static_cast<std::uint64_t>(std::ranges::count(part, label, &LabelledEdge::label));
    return count;
}

std::uint64_t EdgeList::degree(TermId vertex, Label label, Dir dir) const { return links(vertex, label, dir).size(); }

// ---- PreviousSource

void PreviousSource::assign(const Source& now, const EdgeList& added, const EdgeList& removed) {
    now_ = &now;
    added_ = &added;
    removed_ = &removed;
}

void PreviousSource::expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const {
    Matches now;
    now_->expand(keys, label, dir, now);
    std::size_t at = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto row = static_cast<std::uint32_t>(i);
        const auto added = added_->links(keys[i], label, dir);
        const auto append = [&](TermId neighbour) {
            out.rows.push_back(row);
            out.values.push_back(neighbour);
        };
        for (; at < now.rows.size() && now.rows[at] == row; ++at)
            if (added.empty() || !among(added, now.values[at])) append(now.values[at]);
        for (const Link& link : removed_->links(keys[i], label, dir)) append(link.neighbour);
    }
}

void PreviousSource::contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                              std::span<std::uint8_t> found) const {
    std::vector<std::uint8_t> now(subjects.size(), 0);
    now_->contains(subjects, label, objects, now);
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        const bool stayed = now[i] != 0 && !added_->has(subjects[i], label, objects[i]);
        if (stayed || removed_->has(subjects[i], label, objects[i])) found[i] |= 1;
    }
}

void PreviousSource::edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const {
    std::vector<TermId> s, o;
    now_->edges(label, s, o);
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (added_->has(s[i], label, o[i])) continue;
        subjects.push_back(s[i]);
        objects.push_back(o[i]);
    }
    removed_->edges(label, subjects, objects);
}

void PreviousSource::vertices(Label label, Dir dir, std::vector<TermId>& out) const {
    std::vector<TermId> subjects, objects;
    edges(label, subjects, objects);
    const std::size_t first = out.size();
    const std::vector<TermId>& found = dir == Dir::Out ? subjects : objects;
    out.insert(out.end(), found.begin(), found.end());
    sort_unique(out, first);
}

void PreviousSource::labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                               std::vector<Label>& labels) const {
    std::vector<std::uint32_t> rows_now;
    std::vector<Label> labels_now, labels_removed;
    now_->labels_of(keys, dir, rows_now, labels_now);
    removed_->labels(labels_removed);
    std::size_t at = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::size_t first = labels.size();
        const auto append = [&](Label label) {
            rows.push_back(static_cast<std::uint32_t>(i));
            labels.push_back(label);
        };
        for (; at < rows_now.size() && rows_now[at] == i; ++at) {
            const Label label = labels_now[at];
            if (added_->links(keys[i], label, dir).empty() || degree(keys[i], label, dir) != 0) append(label);
        }
        for (const Label label : labels_removed) {
            if (removed_->links(keys[i], label, dir).empty()) continue;
            if (std::find(labels.begin() + static_cast<std::ptrdiff_t>(first), labels.end(), label) == labels.end())
                append(label);
        }
    }
}

void PreviousSource::labels(std::vector<Label>& out) const {
    const std::size_t first = out.size();
    now_->labels(out);
    removed_->labels(out);
    const auto from = out.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(from, out.end());
    out.erase(std::unique(from, out.end()), out.end());
}

LabelStats PreviousSource::stats(Label label) const {
    LabelStats stats = now_->stats(label);
    stats.edges = stats.edges + removed_->edge_count(label) - added_->edge_count(label);
    return stats;
}

std::uint64_t PreviousSource::degree(TermId vertex, Label label, Dir dir) const {
    Matches found;
    expand(std::span(&vertex, 1), label, dir, found);
    return found.values.size();
}

}  // namespace penstock::exec
