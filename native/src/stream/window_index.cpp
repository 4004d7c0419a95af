// How the index changes as the window moves; window_lookup.cpp has the look-ups.
#include "stream/window_index.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "errors.hpp"

namespace penstock {

std::size_t WindowIndex::bytes() const {
    std::size_t bytes = records_.bytes() + edges_.bytes() + labels_.bytes();
    for (const auto& labels : labels_by_) bytes += labels ? labels->bytes() : 0;
    return bytes;
}

HashedNumber* WindowIndex::find_edge(std::uint32_t hash, TermId subject, std::uint32_t label, TermId object) {
    return edges_.find(hash, [&](const HashedNumber& at) {
        const Record& record = records_[at.number];
        return record.s == subject && record.o == object && record.label == label;
    });
}

/// Asks for the cache lines that adding or removing these edges will touch: first all groups of slots, then the slots,
/// then the lists, so that the waits for them overlap.
void WindowIndex::prefetch(std::span<const Record> edges) {
    const auto each = [&](auto&& ask) {
        for (const Record& edge : edges) {
            if (!edge.is_edge()) continue;
            const LabelIndex& index = labels_[edge.label];
            if (index.by[0]) ask(*index.by[0], edge.s);
            if (index.by[1]) ask(*index.by[1], edge.o);
        }
    };
    for (const Record& edge : edges) edges_.prefetch(edge.hash);
    each([](const Adjacency& by, TermId vertex) { by.prefetch(vertex); });
    each([](const Adjacency& by, TermId vertex) { by.prefetch_slot(vertex); });
    each([](const Adjacency& by, TermId vertex) { by.prefetch_list(vertex); });
}

void WindowIndex::add(const Stream::SliceView& slice, std::size_t begin, std::size_t end) {
    if (records_.size() + (end - begin) > RecordQueue::kMaxRecords) {
        throw LimitError("a window cannot hold more than " + std::to_string(RecordQueue::kMaxRecords) + " tuples");
    }
    Record group[kGroup];
    while (begin < end) {
        const std::size_t n = std::min(kGroup, end - begin);
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t row = begin + i;
            const std::uint32_t hash = hash_edge(slice.s[row], slice.label[row], slice.o[row]);
            group[i] = {slice.ts[row], slice.s[row], slice.o[row], hash, labels_.number(slice.label[row])};
        }
        if (records_.size() > kCached) prefetch({group, n});
        for (std::size_t i = 0; i < n; ++i) add_record(group[i]);
        begin += n;
    }
}

void WindowIndex::add_record(const Record& record) {
    HashedNumber* const known = find_edge(record.hash, record.s, record.label, record.o);
    const RecordId id = records_.push(record);
    if (known == nullptr) return add_edge(id);
    supersede(known->number, id);
    known->number = id;
}

/// The old record's edge has come again.
void WindowIndex::supersede(RecordId old, RecordId young) {
    const Record& edge = records_[young];
    LabelIndex& index = labels_[edge.label];
    if (index.by[0]) index.by[0]->refresh(edge.s, edge.o, old, young);
    if (index.by[1]) index.by[1]->refresh(edge.o, edge.s, old, young);
    records_[old].label = Record::kSuperseded;
}

void WindowIndex::add_edge(RecordId id) {
    const Record& edge = records_[id];
    edges_.insert(edge.hash, {edge.hash, id});
    LabelIndex& index = labels_[edge.label];
    ++index.edges;
    for (int dir = 0; dir < 2; ++dir) {
        if (index.by[dir]) link(id, dir);
    }
}

void WindowIndex::expire(std::uint64_t until) {
    if (until <= records_.head()) return;
    if (until >= records_.tail()) {
        clear(records_.tail());
    } else if (until - records_.head() > 2 * (records_.tail() - until)) {
        rebuild(until);  // adding what stays is cheaper than removing what goes
    } else {
        expire_items(until);
    }
    labels_.forget_empty();
}

void WindowIndex::expire_items(std::uint64_t until) {
    for (std::uint64_t next = records_.head(); next < until;) {
        const std::uint64_t end = std::min((next / kGroup + 1) * kGroup, until);
        if (records_.size() > kCached) prefetch(records_.run(next, end));
        for (; next < end; ++next) {
            if (records_.at(next).is_edge()) remove_edge(static_cast<RecordId>(next));
        }
    }
    records_.drop(until);
}

void WindowIndex::remove_edge(RecordId id) {
    const Record& edge = records_[id];
    edges_.erase(edge.hash, edges_.find(edge.hash, [id](const HashedNumber& at) { return at.number == id; }));
    LabelIndex& index = labels_[edge.label];
    --index.edges;
    for (int dir = 0; dir < 2; ++dir) {
        if (index.by[dir]) unlink(edge, dir);
    }
}

void WindowIndex::rebuild(std::uint64_t until) {
    records_.drop(until);
    clear_tables();
    edges_.reserve(records_.size());
    for (std::uint64_t i = records_.head(); i < records_.tail(); ++i) {
        if (records_.at(i).is_edge()) add_edge(static_cast<RecordId>(i));
    }
}

void WindowIndex::clear(std::uint64_t next) {
    records_.reset(next);
    clear_tables();
}

void WindowIndex::clear_tables() {
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
}

void WindowIndex::link(RecordId id, int dir) {
    const Record& edge = records_[id];
    LabelIndex& index = labels_[edge.label];
    const auto [vertex, neighbour] = dir == 0 ? std::pair(edge.s, edge.o) : std::pair(edge.o, edge.s);
    if (index.by[dir]->add(vertex, neighbour, id) && labels_by_[dir]) labels_by_[dir]->add(vertex, index.label);
}

void WindowIndex::unlink(const Record& edge, int dir) {
    LabelIndex& index = labels_[edge.label];
    const auto [vertex, neighbour] = dir == 0 ? std::pair(edge.s, edge.o) : std::pair(edge.o, edge.s);
    if (index.by[dir]->remove(vertex, neighbour) && labels_by_[dir]) labels_by_[dir]->remove(vertex, index.label);
}

}  // namespace penstock
