#include "exec/changed_source.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "exec/kernels.hpp"

namespace penstock::exec {

namespace {

using Link = EdgeList::Link;

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
    index_[0].made = index_[1].made = false;
}

void EdgeList::index(Dir dir) const {
    Index& index = index_[static_cast<int>(dir)];
    if (index.made) return;
    index.made = true;
    std::vector<Link>& links = unordered_;
    links.clear();
    for (const auto& part : parts_)
        for (const LabelledEdge& edge : part)
            links.push_back({edge.label, dir == Dir::Out ? edge.s : edge.o, dir == Dir::Out ? edge.o : edge.s});
    index.links.resize(links.size());
    index.ranges.assign(std::bit_ceil(std::max<std::size_t>(2 * links.size(), 16)), Range{});
    index.used.clear();
    places_.clear();
    // A range first has the number of one of its edges, and then that of its first place.
    for (std::uint32_t i = 0; i < links.size(); ++i) {
        const std::size_t at = index.place_of(links[i].vertex, links[i].label, links);
        if (index.ranges[at].size++ == 0) {
            index.ranges[at].first = i;
            index.used.push_back(static_cast<std::uint32_t>(at));
        }
        places_.push_back(static_cast<std::uint32_t>(at));
    }
    std::uint32_t next = 0;
    for (const std::uint32_t at : index.used) {
        index.ranges[at].first = next;
        next += std::exchange(index.ranges[at].size, 0);
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
        Range& range = index.ranges[places_[i]];
        index.links[range.first + range.size++] = links[i];
    }
    for (const std::uint32_t at : index.used) {
        Range& range = index.ranges[at];
        if (range.size == 1) continue;
        const auto begin = index.links.begin() + range.first;
        std::ranges::sort(begin, begin + range.size, {}, &Link::neighbour);
        const auto same = std::ranges::unique(begin, begin + range.size, {}, &Link::neighbour);
        range.size -= static_cast<std::uint32_t>(same.size());
    }
}

/// The place of a vertex's range, or the free place where it belongs. `links`: where ranges begin.
std::size_t EdgeList::Index::place_of(TermId vertex, Label label, const std::vector<Link>& links) const {
    const std::size_t mask = ranges.size() - 1;
    std::size_t at = combine(label, vertex) & mask;
    for (; ranges[at].size != 0; at = (at + 1) & mask) {
        const Link& link = links[ranges[at].first];
        if (link.vertex == vertex && link.label == label) break;
    }
    return at;
}

std::span<const Link> EdgeList::links(TermId vertex, Label label, Dir dir) const {
    index(dir);
    const Index& index = index_[static_cast<int>(dir)];
    return index.links_of(index.ranges[index.place_of(vertex, label, index.links)]);
}

template <class Visit>
void EdgeList::each_range(Label label, Dir dir, Visit visit) const {
    index(dir);
    const Index& index = index_[static_cast<int>(dir)];
    for (const std::uint32_t at : index.used)
        if (const auto links = index.links_of(index.ranges[at]); links.front().label == label) visit(links);
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
    each_range(label, dir, [&](std::span<const Link> links) { out.push_back(links.front().vertex); });
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
    each_range(label, Dir::Out, [&](std::span<const Link> links) {
        for (const Link& link : links) {
            subjects.push_back(link.vertex);
            objects.push_back(link.neighbour);
        }
    });
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
