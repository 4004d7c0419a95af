// How the index changes as the window moves; window_lookup.cpp has the look-ups.
#include "stream/window_index.hpp"

#include <algorithm>

#include "errors.hpp"

namespace penstock {

std::size_t WindowIndex::bytes() const {
    std::size_t bytes = records_.bytes() + edges_.bytes() + labels_.bytes();
    for (const auto& labels : labels_by_) bytes += labels ? labels->bytes() : 0;
    return bytes;
}

RecordId* WindowIndex::find_edge(std::uint32_t tag, TermId subject, std::uint32_t label, TermId object) {
    return edges_.find(tag, [&](RecordId id) {
        const Record& record = records_[id];
        return record.s == subject && record.o == object && record.label == label;
    });
}

/// Asks for the cache lines that adding or removing that edge will touch.
void WindowIndex::prefetch(const LabelIndex& index, std::uint32_t tag, TermId subject, TermId object) const {
    edges_.prefetch(tag);
    if (index.by[0]) index.by[0]->prefetch(subject);
    if (index.by[1]) index.by[1]->prefetch(object);
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
            const std::uint32_t tag = EdgeSet::tag(hash_edge(slice.s[row], slice.label[row], slice.o[row]));
            group[i] = {slice.ts[row], slice.s[row], slice.o[row], tag, labels_.number(slice.label[row]), {0, 0}};
            prefetch(labels_[group[i].label], tag, group[i].s, group[i].o);
        }
        for (std::size_t i = 0; i < n; ++i) add_record(group[i]);
        begin += n;
    }
}

void WindowIndex::add_record(const Record& record) {
    RecordId* const known = find_edge(record.tag, record.s, record.label, record.o);
    const RecordId id = records_.push(record);
    if (known != nullptr) {
        supersede(*known, id);
        *known = id;
        return;
    }
    edges_.insert(record.tag, id);
    LabelIndex& index = labels_[record.label];
    ++index.edges;
    for (int dir = 0; dir < 2; ++dir) {
        if (index.by[dir]) link(id, dir);
    }
}

/// The edge of the old record has come again.
void WindowIndex::supersede(RecordId old, RecordId young) {
    Record& before = records_[old];
    Record& now = records_[young];
    before.tag = 0;
    const LabelIndex& index = labels_[now.label];
    for (int dir = 0; dir < 2; ++dir) {
        if (!index.by[dir]) continue;
        now.place[dir] = before.place[dir];
        index.by[dir]->find(dir == 0 ? now.s : now.o)->records()[now.place[dir]] = young;
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
        const std::uint64_t end = std::min(next + kGroup, until);
        for (std::uint64_t i = next; i < end; ++i) {
            const Record& record = records_.at(i);
            if (record.tag != 0) prefetch(labels_[record.label], record.tag, record.s, record.o);
        }
        for (; next < end; ++next) {
            if (records_.at(next).tag != 0) remove_edge(static_cast<RecordId>(next));
        }
    }
    records_.drop(until);
}

void WindowIndex::remove_edge(RecordId id) {
    const Record& record = records_[id];
    LabelIndex& index = labels_[record.label];
    edges_.erase(record.tag, id);
    --index.edges;
    for (int dir = 0; dir < 2; ++dir) {
        if (index.by[dir]) unlink(record, dir);
    }
}

void WindowIndex::rebuild(std::uint64_t until) {
    records_.drop(until);
    RecordQueue stay;
    std::swap(stay, records_);
    clear(0);
    std::swap(stay, records_);
    edges_.reserve(records_.size());
    for (std::uint64_t i = records_.head(); i < records_.tail(); ++i) {
        const Record& record = records_.at(i);
        if (record.tag == 0) continue;
        const auto id = static_cast<RecordId>(i);
        edges_.insert(record.tag, id);
        LabelIndex& index = labels_[record.label];
        ++index.edges;
        for (int dir = 0; dir < 2; ++dir) {
            if (index.by[dir]) link(id, dir);
        }
    }
}

void WindowIndex::clear(std::uint64_t next) {
    records_.reset(next);
    edges_.clear();
    for (const auto& index : labels_.all()) {
        if (!index) continue;
        index->edges = 0;
        for (auto& by : index->by) {
            if (by) by = std::make_unique<Adjacency>();
        }
    }
    for (auto& labels : labels_by_) {
        if (labels) labels = std::make_unique<Adjacency>();
    }
}

void WindowIndex::link(RecordId id, int dir) {
    Record& record = records_[id];
    const TermId vertex = dir == 0 ? record.s : record.o;
    LabelIndex& index = labels_[record.label];
    Adjacency::Slot& slot = index.by[dir]->add(vertex, dir == 0 ? record.o : record.s, id);
    record.place[dir] = slot.count - 1;
    if (slot.count == 1 && labels_by_[dir]) {
        slot.link = labels_by_[dir]->add(vertex, index.label, record.label).count - 1;
    }
}

void WindowIndex::unlink(const Record& record, int dir) {
    const TermId vertex = dir == 0 ? record.s : record.o;
    const Adjacency::Removed removed = labels_[record.label].by[dir]->remove(vertex, record.place[dir]);
    if (removed.moved) records_[removed.record].place[dir] = record.place[dir];
    if (!removed.last || !labels_by_[dir]) return;
    const Adjacency::Removed label = labels_by_[dir]->remove(vertex, removed.link);
    if (label.moved) labels_[label.record].by[dir]->find(vertex)->link = removed.link;
}

}  // namespace penstock
