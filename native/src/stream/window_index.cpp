// Changes of the index as the window moves. The look-ups are in window_lookup.cpp.
#include "stream/window_index.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "errors.hpp"
#include "rdf/sweeps.hpp"

namespace penstock {

std::size_t WindowIndex::bytes() const {
    std::size_t bytes = records_.bytes() + edges_.bytes() + labels_.bytes();
    bytes += (changes_.added.capacity() + changes_.removed.capacity()) * sizeof(LabelledEdge);
    for (const auto& labels : labels_by_) bytes += labels ? labels->bytes() : 0;
    return bytes;
}

WindowIndex::Edges::Place WindowIndex::find_edge(std::uint32_t hash, TermId subject, std::uint32_t label,
                                                 TermId object) {
    return edges_.find(hash, records_.held(), has_edge(subject, label, object));
}

void WindowIndex::reserve(std::size_t tuples) { edges_.reserve(edges_.size() + tuples, records_.held(), edge_hash()); }

void WindowIndex::begin_move() {
    // Unique among all windows; relaxed, because it publishes nothing.
    static std::atomic<std::uint64_t> last = 0;
    before_ = version_;
    version_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
    forget_changes();
    recording_ = recorded_moves_ > 0;
    if (recording_) {
        --recorded_moves_;
        changes_.from = before_;
        changes_.to = version_;
        changes_.sweeps = dictionary_sweeps();
    }
}

void WindowIndex::forget_changes() {
    recording_ = false;
    changes_.from = changes_.to = 0;
    for (auto* edges : {&changes_.added, &changes_.removed}) {
        if (recorded_moves_ == 0) *edges = {};
        edges->clear();
    }
}

const EdgeChanges* WindowIndex::changes() {
    recorded_moves_ = kRecordedMoves;
    return recording_ ? &changes_ : nullptr;
}

void WindowIndex::add(const Stream::SliceView& slice, std::size_t begin, std::size_t end) {
    if (records_.size() + (end - begin) > RecordQueue::kMaxRecords) {
        throw LimitError("a window cannot hold more than " + std::to_string(RecordQueue::kMaxRecords) + " tuples");
    }
    while (begin < end) {
        if (records_.tail() >= forget_at_) forget_old_ids();
        Arrivals arrivals;
        arrivals.first = static_cast<RecordId>(records_.tail());
        arrivals.records = records_.extend(std::min(kGroup, end - begin));
        arrivals.held = records_.held();
        write(arrivals, slice, begin);
        add_edges(arrivals);
        add_links(arrivals);
        begin += arrivals.records.size();
    }
}

/// Writes records of rows, and prefetches the table lines that they will be added to.
void WindowIndex::write(Arrivals& arrivals, const Stream::SliceView& slice, std::size_t row) {
    Link* link = arrivals.links;
    for (std::size_t i = 0; i < arrivals.records.size(); ++i, ++row) {
        LabelIndex& index = labels_.of(slice.label[row]);
        const TermId s = slice.s[row], o = slice.o[row];
        arrivals.records[i] = {slice.ts[row], s, o, index.number, 0};
        arrivals.hashes[i] = hash_edge(s, index.label, o);
        edges_.prefetch(arrivals.hashes[i]);
        const RecordId id = arrivals.first + static_cast<RecordId>(i);
        if (index.by[0]) *link++ = {&*index.by[0], s, o, id, Adjacency::hash(s), 0};
        if (index.by[1]) *link++ = {&*index.by[1], o, s, id, Adjacency::hash(o), 1};
    }
    arrivals.link_count = static_cast<std::size_t>(link - arrivals.links);
}

void WindowIndex::add_edges(Arrivals& arrivals) {
    for (std::size_t i = 0; i < arrivals.records.size(); ++i) {
        const Record& edge = arrivals.records[i];
        const RecordId id = arrivals.first + static_cast<RecordId>(i);
        const auto same = has_edge(edge.s, edge.label, edge.o);
        const auto [at, known] = edges_.find_or_take(arrivals.hashes[i], id, arrivals.held, same, edge_hash());
        arrivals.old[i] = id;
        if (known) {  // a repeated edge
            arrivals.old[i] = at.id();
            edges_.renew(arrivals.hashes[i], at, id);
        } else {
            ++labels_[edge.label].edges;
            if (recording_) changes_.added.push_back({labels_[edge.label].label, edge.s, edge.o});
        }
    }
}

void WindowIndex::add_links(const Arrivals& arrivals) {
    const std::span<const Link> links(arrivals.links, arrivals.link_count);
    for (const Link& link : links) link.by->prefetch(link.hash);
    for (const Link& link : links) link.by->prefetch_slot(link.hash);
    for (const Link& link : links) add_link(link, arrivals.old[link.id - arrivals.first], arrivals.held);
    for (std::size_t i = 0; i < arrivals.records.size(); ++i) {
        const RecordId id = arrivals.first + static_cast<RecordId>(i);
        if (arrivals.old[i] != id) records_[arrivals.old[i]].label = Record::kSuperseded;
    }
}

/// Adds an edge to its list, which may contain it with an older record.
void WindowIndex::add_link(const Link& link, RecordId old, Held held) {
    const auto linked = old == link.id ? link.by->add(link.vertex, link.hash, link.neighbour, link.id, held)
                                       : link.by->refresh(link.vertex, link.hash, link.neighbour, old, link.id, held);
    link.by->touch(link.hash, version_);
    link_record(link.id, kOfVertex + link.dir, linked);
    if (labels_by_[link.dir]) add_label(link, labels_[records_[link.id].label].label, linked, held);
}

/// In the list of its vertex's labels, a label has the record of the vertex's youngest edge in the label's index.
void WindowIndex::add_label(const Link& link, Label label, const Adjacency::Linked& linked, Held held) {
    Adjacency& by = *labels_by_[link.dir];
    link_record(link.id, kOfLabels + link.dir,
                linked.first ? by.add(link.vertex, link.hash, label, link.id, held)
                             : by.refresh(link.vertex, link.hash, label, linked.before, link.id, held));
}

WindowIndex::Link WindowIndex::link_of(const Record& edge, RecordId id, int dir) {
    const TermId of = vertex(edge, dir);
    return {&*labels_[edge.label].by[dir], of, vertex(edge, 1 - dir), id, Adjacency::hash(of), dir};
}

void WindowIndex::link_record(RecordId id, unsigned list, const Adjacency::Linked& linked) {
    if (!linked.first) records_[linked.before].links |= later_in(list);
    if (linked.in_block) records_[id].links |= in_block(list);
}

void WindowIndex::expire(std::uint64_t until) {
    if (until <= records_.head()) return;
    if (until >= records_.tail()) return clear(records_.tail());
    bool sparse = false;
    for (std::uint64_t next = records_.head(); next < until;) {
        const auto group = records_.run(next, std::min(until, next + kGroup));
        sparse |= leave(group, static_cast<RecordId>(next));
        next += group.size();
    }
    records_.drop(until);
    if (sparse) fit_tables();
    labels_.forget_empty();
}

/// Removes records that are about to expire from tables. Returns true if a table has become too large.
bool WindowIndex::leave(std::span<const Record> records, RecordId first) {
    struct Leaving {
        Adjacency* by;
        std::uint32_t hash;
        RecordId id;
        bool in_block;
    } leaving[4 * kGroup];
    std::uint32_t hashes[kGroup];
    Leaving* end = leaving;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const Record& edge = records[i];
        if (!edge.is_edge()) continue;
        LabelIndex& index = labels_[edge.label];
        --index.edges;
        if (recording_) changes_.removed.push_back({index.label, edge.s, edge.o});
        hashes[i] = hash_edge(edge.s, index.label, edge.o);
        edges_.prefetch(hashes[i]);
        for (int dir = 0; dir < 2; ++dir) {
            if (!index.by[dir]) continue;
            if (index.by[dir]->is_watched()) index.by[dir]->touch(Adjacency::hash(vertex(edge, dir)), version_);
            if (edge.links & later_in(kOfVertex + dir)) continue;
            const auto add = [&](Adjacency& by, unsigned list) {
                const std::uint32_t hash = Adjacency::hash(vertex(edge, dir));
                by.prefetch(hash);
                *end++ = {&by, hash, first + static_cast<RecordId>(i), (edge.links & in_block(list)) != 0};
            };
            add(*index.by[dir], kOfVertex + dir);
            if (labels_by_[dir] && !(edge.links & later_in(kOfLabels + dir))) add(*labels_by_[dir], kOfLabels + dir);
        }
    }
    bool sparse = false;
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (records[i].is_edge()) edges_.leave(hashes[i], first + static_cast<RecordId>(i));
    }
    for (const Leaving* at = leaving; at < end; ++at) sparse |= at->by->leave(at->hash, at->id, at->in_block);
    return sparse || edges_.is_sparse();
}

/// Calls f(adjacency) for each existing index.
template <class F>
void WindowIndex::each_adjacency(F&& f) {
    for (const auto& index : labels_.all()) {
        for (int dir = 0; index && dir < 2; ++dir) {
            if (index->by[dir]) f(*index->by[dir]);
        }
    }
    for (const auto& labels : labels_by_) {
        if (labels) f(*labels);
    }
}

void WindowIndex::fit_tables() {
    const Held held = records_.held();
    edges_.fit(held, edge_hash());
    each_adjacency([held](Adjacency& by) { by.fit(held); });
}

/// Called before an id recurs (AgedGroups::forget_old_ids).
void WindowIndex::forget_old_ids() {
    const Held held = records_.held();
    edges_.forget_old_ids(held);
    each_adjacency([held](Adjacency& by) { by.forget_old_ids(held); });
    forget_at_ = records_.tail() + kIdsForgotten;
}

void WindowIndex::clear(std::uint64_t next) {
    forget_changes();  // all edges leave: an evaluation of the new content costs less
    records_.reset(next);
    edges_.clear();
    for (const auto& index : labels_.all()) {
        if (!index) continue;
        index->edges = 0;
        for (auto& by : index->by) {
            if (by) by.emplace();
        }
    }
    for (auto& labels : labels_by_) {
        if (labels) labels = std::make_unique<Adjacency>();
    }
    forget_at_ = next + kIdsForgotten;
    labels_.forget_empty();
}

}  // namespace penstock
