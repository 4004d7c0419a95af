#include "store/overlay.hpp"

#include <algorithm>

namespace penstock {

// ---- sets of edges
bool Overlay::Edges::insert(const Edge& edge) {
    if (has(edge.subject, edge.label, edge.object)) return false;
    link(edge.subject, edge.label, edge.object, Dir::Out);
    link(edge.object, edge.label, edge.subject, Dir::In);
    ++counts_[edge.label];
    return true;
}

bool Overlay::Edges::erase(const Edge& edge) {
    if (!has(edge.subject, edge.label, edge.object)) return false;
    unlink(edge.subject, edge.label, edge.object, Dir::Out);
    unlink(edge.object, edge.label, edge.subject, Dir::In);
    if (--counts_[edge.label] == 0) counts_.erase(edge.label);
    return true;
}

bool Overlay::Edges::has(TermId subject, Label label, TermId object) const {
    return neighbours(subject, label, Dir::Out).contains(object);
}

const std::set<TermId>& Overlay::Edges::neighbours(TermId vertex, Label label, Dir dir) const {
    static const std::set<TermId> none;
    const Lists& lists = lists_[static_cast<std::size_t>(dir)];
    const auto found = lists.find({label, vertex});
    return found == lists.end() ? none : found->second;
}

const std::set<Label>& Overlay::Edges::labels(TermId vertex, Dir dir) const {
    static const std::set<Label> none;
    const auto& labels = labels_[static_cast<std::size_t>(dir)];
    const auto found = labels.find(vertex);
    return found == labels.end() ? none : found->second;
}

std::uint64_t Overlay::Edges::count(Label label) const {
    const auto found = counts_.find(label);
    return found == counts_.end() ? 0 : found->second;
}

void Overlay::Edges::append(std::vector<Edge>& out) const {
    for (const auto& [from, objects] : lists_[static_cast<std::size_t>(Dir::Out)])
        for (const TermId object : objects) out.push_back({from.second, from.first, object});
}

void Overlay::Edges::link(TermId from, Label label, TermId to, Dir dir) {
    lists_[static_cast<std::size_t>(dir)][{label, from}].insert(to);
    labels_[static_cast<std::size_t>(dir)][from].insert(label);
}

void Overlay::Edges::unlink(TermId from, Label label, TermId to, Dir dir) {
    Lists& lists = lists_[static_cast<std::size_t>(dir)];
    const auto list = lists.find({label, from});
    list->second.erase(to);
    if (!list->second.empty()) return;
    lists.erase(list);
    auto& labels = labels_[static_cast<std::size_t>(dir)];
    const auto of_vertex = labels.find(from);
    of_vertex->second.erase(label);
    if (of_vertex->second.empty()) labels.erase(of_vertex);
}

// ---- changes
void Overlay::add(std::span<const Edge> edges) {
    for (const Edge& edge : edges)
        if (!removed_.erase(edge) && !base_has(edge)) added_.insert(edge);
}

void Overlay::remove(std::span<const Edge> edges) {
    for (const Edge& edge : edges)
        if (!added_.erase(edge) && base_has(edge)) removed_.insert(edge);
}

std::vector<Edge> Overlay::added() const {
    std::vector<Edge> out;
    added_.append(out);
    return out;
}

std::vector<Edge> Overlay::removed() const {
    std::vector<Edge> out;
    removed_.append(out);
    return out;
}

bool Overlay::base_has(const Edge& edge) const {
    std::uint8_t found = 0;
    base_.contains({&edge.subject, 1}, edge.label, {&edge.object, 1}, {&found, 1});
    return found != 0;
}

// ---- reads
void Overlay::expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const {
    if (!changed(label)) {
        base_.expand(keys, label, dir, out);
        return;
    }
    Matches below;
    base_.expand(keys, label, dir, below);
    std::size_t next = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto& removed = removed_.neighbours(keys[i], label, dir);
        const auto append = [&](TermId value) {
            out.rows.push_back(static_cast<std::uint32_t>(i));
            out.values.push_back(value);
        };
        for (; next < below.rows.size() && below.rows[next] == i; ++next)
            if (removed.empty() || !removed.contains(below.values[next])) append(below.values[next]);
        for (const TermId value : added_.neighbours(keys[i], label, dir)) append(value);
    }
}

void Overlay::contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                       std::span<std::uint8_t> found) const {
    if (!changed(label)) {
        base_.contains(subjects, label, objects, found);
        return;
    }
    std::vector<std::uint8_t> below(found.size(), 0);
    base_.contains(subjects, label, objects, below);
    for (std::size_t i = 0; i < subjects.size(); ++i)
        if ((below[i] != 0 && !removed_.has(subjects[i], label, objects[i])) ||
            added_.has(subjects[i], label, objects[i]))
            found[i] |= 1;
}

void Overlay::vertices(Label label, Dir dir, std::vector<TermId>& out) const {
    const std::size_t first = out.size();
    base_.vertices(label, dir, out);
    if (removed_.count(label) != 0) {
        const auto gone = [&](TermId vertex) {
            return !removed_.neighbours(vertex, label, dir).empty() && degree(vertex, label, dir) == 0;
        };
        out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), gone), out.end());
    }
    added_.for_each(label, dir, [&](TermId vertex, const auto&) {
        if (base_.degree(vertex, label, dir) == 0) out.push_back(vertex);
    });
}

void Overlay::labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                        std::vector<Label>& labels) const {
    std::vector<std::uint32_t> below_rows;
    std::vector<Label> below_labels;
    base_.labels_of(keys, dir, below_rows, below_labels);
    std::vector<std::vector<Label>> found(keys.size());
    for (std::size_t k = 0; k < below_rows.size(); ++k) found[below_rows[k]].push_back(below_labels[k]);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        for (const Label label : found[i])
            if (removed_.neighbours(keys[i], label, dir).empty() || degree(keys[i], label, dir) != 0) {
                rows.push_back(static_cast<std::uint32_t>(i));
                labels.push_back(label);
            }
        for (const Label label : added_.labels(keys[i], dir))
            if (std::find(found[i].begin(), found[i].end(), label) == found[i].end()) {
                rows.push_back(static_cast<std::uint32_t>(i));
                labels.push_back(label);
            }
    }
}

void Overlay::edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const {
    std::vector<TermId> from, to;
    base_.edges(label, from, to);
    for (std::size_t i = 0; i < from.size(); ++i)
        if (!removed_.has(from[i], label, to[i])) {
            subjects.push_back(from[i]);
            objects.push_back(to[i]);
        }
    added_.for_each(label, Dir::Out, [&](TermId subject, const auto& neighbours) {
        for (const TermId object : neighbours) {
            subjects.push_back(subject);
            objects.push_back(object);
        }
    });
}

void Overlay::labels(std::vector<Label>& out) const {
    const std::size_t first = out.size();
    base_.labels(out);
    const std::set<Label> known(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
    for (const auto& [label, count] : added_.counts())
        if (!known.contains(label)) out.push_back(label);
}

bool Overlay::has_edges(Label label) const {
    if (added_.count(label) != 0) return true;
    return removed_.count(label) == 0 ? base_.has_edges(label) : Source::has_edges(label);
}

LabelStats Overlay::stats(Label label) const {
    LabelStats stats = base_.stats(label);
    if (!changed(label)) return stats;
    stats.edges = stats.edges + added_.count(label) - removed_.count(label);
    added_.for_each(label, Dir::Out, [&](TermId, const auto&) { ++stats.subjects; });
    added_.for_each(label, Dir::In, [&](TermId, const auto&) { ++stats.objects; });
    stats.subjects = std::min(stats.subjects, stats.edges);
    stats.objects = std::min(stats.objects, stats.edges);
    return stats;
}

std::uint64_t Overlay::degree(TermId vertex, Label label, Dir dir) const {
    return base_.degree(vertex, label, dir) + added_.neighbours(vertex, label, dir).size() -
           removed_.neighbours(vertex, label, dir).size();
}

}  // namespace penstock
