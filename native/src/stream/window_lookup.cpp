// Look-ups of the merged index, and the indexes that they create on demand.
#include <algorithm>
#include <unordered_set>

#include "stream/event_time.hpp"
#include "stream/window_index.hpp"

namespace penstock {
namespace {

constexpr std::size_t kAhead = 8;  // number of keys whose slots are prefetched
constexpr std::size_t kNear = 4;   // number of keys whose blocks are prefetched

}  // namespace

/// Calls f(record, id) for each distinct edge.
template <class F>
void WindowIndex::each_edge(F&& f) {
    for (std::uint64_t i = records_.head(); i < records_.tail(); ++i) {
        Record& record = records_[static_cast<RecordId>(i)];
        if (record.is_edge()) f(record, static_cast<RecordId>(i));
    }
}

// ---- indexes on demand

Adjacency& WindowIndex::adjacency(Label label, Dir dir) {
    LabelIndex& index = labels_.of(label);
    const int d = static_cast<int>(dir);
    if (!index.by[d]) {
        index.by[d].emplace();
        if (index.edges > 0) {
            each_edge([&](Record& edge, RecordId id) {
                if (edge.label == index.number) add_link(link_of(edge, id, d), id, records_.held());
            });
        }
    }
    return *index.by[d];
}

void WindowIndex::index_all(Dir dir) {
    if (labels_.indexes_all(dir)) return;
    labels_.index_all(dir);
    const int d = static_cast<int>(dir);
    std::vector<bool> missing(labels_.all().size());
    for (std::uint32_t number = 0; number < missing.size(); ++number) {
        LabelIndex* const index = labels_.all()[number].get();
        if (index == nullptr || index->by[d]) continue;
        missing[number] = true;
        index->by[d].emplace();
    }
    each_edge([&](Record& edge, RecordId id) {
        if (missing[edge.label]) add_link(link_of(edge, id, d), id, records_.held());
    });
}

void WindowIndex::link_vertices_to_labels(Dir dir) {
    const int d = static_cast<int>(dir);
    if (labels_by_[d]) return;
    labels_by_[d] = std::make_unique<Adjacency>();
    each_edge([&](Record& edge, RecordId id) {
        if (edge.links & later_in(kOfVertex + d)) return;
        add_label(link_of(edge, id, d), labels_[edge.label].label, {true, false, id}, records_.held());
    });
}

// ---- look-ups

void WindowIndex::expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) {
    Adjacency& edges = adjacency(label, dir);
    const Held held = records_.held();
    const auto append = [&](std::size_t row, std::span<const TermId> neighbours) {
        out.rows.insert(out.rows.end(), neighbours.size(), static_cast<std::uint32_t>(row));
        out.values.insert(out.values.end(), neighbours.begin(), neighbours.end());
    };
    if (edges.fits_cache()) {
        for (std::size_t row = 0; row < keys.size(); ++row)
            append(row, edges.neighbours(keys[row], Adjacency::hash(keys[row]), held));
        return;
    }
    NeighbourList* lists[kNear];  // of the last keys; their blocks are being prefetched
    for (std::size_t row = 0; row < keys.size() + kNear; ++row) {
        NeighbourList*& list = lists[row % kNear];
        if (row >= kNear && list != nullptr) append(row - kNear, list->values(held));
        if (row >= keys.size()) continue;
        if (row + kAhead < keys.size()) edges.prefetch(Adjacency::hash(keys[row + kAhead]));
        if (row + kAhead / 2 < keys.size()) edges.prefetch_slot(Adjacency::hash(keys[row + kAhead / 2]));
        list = edges.list(keys[row], Adjacency::hash(keys[row]), held);
        if (list != nullptr) list->prefetch();
    }
}

bool WindowIndex::changed_since(std::uint64_t version, std::span<const TermId> keys, Label label, Dir dir,
                                std::vector<std::uint32_t>& rows) {
    if (version == version_) return true;
    const Touched& touched = adjacency(label, dir).watch(version_);
    if (version != before_ || !touched.knows(version_)) return false;
    for (std::size_t row = 0; row < keys.size(); ++row)
        if (touched.may_have(Adjacency::hash(keys[row]), version_)) rows.push_back(static_cast<std::uint32_t>(row));
    return true;
}

void WindowIndex::contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                           std::span<std::uint8_t> found) {
    const LabelIndex* const index = labels_.find(label);
    if (index == nullptr) return;
    std::uint32_t hashes[kAhead];
    for (std::size_t begin = 0; begin < subjects.size(); begin += kAhead) {
        const std::size_t n = std::min(kAhead, subjects.size() - begin);
        for (std::size_t i = 0; i < n; ++i) {
            hashes[i] = hash_edge(subjects[begin + i], label, objects[begin + i]);
            edges_.prefetch(hashes[i]);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t row = begin + i;
            found[row] |= find_edge(hashes[i], subjects[row], index->number, objects[row]) ? 1 : 0;
        }
    }
}

std::int64_t WindowIndex::latest(TermId subject, Label label, TermId object) {
    const LabelIndex* const index = labels_.find(label);
    if (index == nullptr) return kNever;
    const Edges::Place found = find_edge(hash_edge(subject, label, object), subject, index->number, object);
    return found ? records_[found.id()].ts : kNever;
}

std::uint64_t WindowIndex::degree(TermId vertex, Label label, Dir dir) {
    return adjacency(label, dir).degree(vertex, records_.held());
}

void WindowIndex::vertices(Label label, Dir dir, std::vector<TermId>& out) {
    Adjacency& edges = adjacency(label, dir);
    out.reserve(out.size() + edges.vertices());
    edges.each(records_.held(), [&](TermId vertex, auto) { out.push_back(vertex); });
}

/// Prefetches what the next keys read in the index of each label, before key number `row`.
inline void WindowIndex::prefetch_labels(std::span<const TermId> keys, std::size_t row, int d) const {
    for (const auto& index : labels_.all()) {
        if (!index || index->edges == 0 || (row != 0 && index->by[d]->fits_cache())) continue;
        const Adjacency& edges = *index->by[d];
        if (row == 0) edges.prefetch(Adjacency::hash(keys[0]));
        if (row + kAhead < keys.size()) edges.prefetch(Adjacency::hash(keys[row + kAhead]));
        if (row + kAhead / 2 < keys.size()) edges.prefetch_slot(Adjacency::hash(keys[row + kAhead / 2]));
    }
}

void WindowIndex::labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                            std::vector<Label>& labels) {
    index_all(dir);
    const int d = static_cast<int>(dir);
    if (!labels_by_[d] && labels_.size() > kProbedLabels) link_vertices_to_labels(dir);
    const Held held = records_.held();
    const auto add = [&](std::size_t row, Label label) {
        rows.push_back(static_cast<std::uint32_t>(row));
        labels.push_back(label);
    };
    for (std::size_t row = 0; row < keys.size(); ++row) {
        const std::uint32_t hash = Adjacency::hash(keys[row]);
        if (labels_by_[d]) {
            for (const TermId label : labels_by_[d]->neighbours(keys[row], hash, held)) {
                add(row, static_cast<Label>(label));
            }
            continue;
        }
        prefetch_labels(keys, row, d);
        for (const auto& index : labels_.all()) {
            if (index && index->by[d]->has(keys[row], hash, held)) add(row, index->label);
        }
    }
}

void WindowIndex::edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) {
    const LabelIndex* const index = labels_.find(label);
    if (index == nullptr || index->edges == 0) return;
    subjects.reserve(subjects.size() + index->edges);
    objects.reserve(objects.size() + index->edges);
    if (index->edges >= records_.size() / 4) {  // the queue is denser than any index
        each_edge([&](const Record& record, RecordId) {
            if (record.label != index->number) return;
            subjects.push_back(record.s);
            objects.push_back(record.o);
        });
        return;
    }
    const bool inward = index->by[1] && !index->by[0];
    adjacency(label, inward ? Dir::In : Dir::Out)
        .each(records_.held(), [&](TermId vertex, std::span<const TermId> neighbours) {
            auto& vertices = inward ? objects : subjects;
            auto& others = inward ? subjects : objects;
            vertices.insert(vertices.end(), neighbours.size(), vertex);
            others.insert(others.end(), neighbours.begin(), neighbours.end());
        });
}

void WindowIndex::labels(std::vector<Label>& out) const {
    for (const auto& index : labels_.all()) {
        if (index && index->edges > 0) out.push_back(index->label);
    }
}

std::uint64_t WindowIndex::edge_count(Label label) {
    const LabelIndex* const index = labels_.find(label);
    return index == nullptr ? 0 : index->edges;
}

LabelStats WindowIndex::stats(Label label) {
    LabelIndex* const index = labels_.find(label);
    if (index == nullptr || index->edges == 0) return {};
    return {index->edges, count_vertices(*index, Dir::Out), count_vertices(*index, Dir::In)};
}

/// A planner's request does not create an index. For a direction without index the last count is reused until the
/// number of edges has changed by an eighth.
std::uint64_t WindowIndex::count_vertices(LabelIndex& index, Dir dir) {
    const int d = static_cast<int>(dir);
    if (index.by[d]) return index.by[d]->vertices();
    const std::uint64_t then = index.counted_edges[d];
    const std::uint64_t change = index.edges > then ? index.edges - then : then - index.edges;
    if (change * 8 > then || change * 8 > index.edges) {
        index.counted_vertices[d] = scan_vertices(index, dir);
        index.counted_edges[d] = index.edges;
    }
    return std::clamp<std::uint64_t>(index.counted_vertices[d], 1, index.edges);
}

std::uint64_t WindowIndex::scan_vertices(const LabelIndex& index, Dir dir) {
    std::unordered_set<TermId> distinct;
    each_edge([&](const Record& record, RecordId) {
        if (record.label == index.number) distinct.insert(dir == Dir::Out ? record.s : record.o);
    });
    return distinct.size();
}

}  // namespace penstock
