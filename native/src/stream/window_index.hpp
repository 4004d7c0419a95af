// The merged index of a window: its tuples in order of time, its distinct edges, and per label and direction, once
// asked for, vertex -> neighbours. Time windows and count windows differ only in which record expires next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "source.hpp"
#include "stream/hash_groups.hpp"
#include "stream/label_indexes.hpp"
#include "stream/record_queue.hpp"
#include "stream/stream.hpp"

namespace penstock {

/// Every occurrence of a tuple is a record of the queue; the edge belongs to the youngest, so an expiring older one
/// changes nothing (SEMANTICS §7.11, 12). A direction of a label is indexed from the first time that it is asked for:
/// what no query reads costs only the queue and the set of edges. Look-ups therefore change the index: one thread.
class WindowIndex {
public:
    const RecordQueue& records() const { return records_; }
    std::size_t distinct() const { return edges_.size(); }
    std::size_t bytes() const;

    /// Adds rows [begin, end) of the slice, which are not older than what is there.
    void add(const Stream::SliceView& slice, std::size_t begin, std::size_t end);
    /// Room for so many more tuples.
    void reserve(std::size_t tuples) { edges_.reserve(edges_.size() + tuples); }
    /// Drops all records below that sequence number.
    void expire(std::uint64_t until);
    /// Drops everything; the next record gets that sequence number. Indexes stay asked for.
    void clear(std::uint64_t next);

    // As Source has them.
    void expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out);
    void contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                  std::span<std::uint8_t> found);
    void vertices(Label label, Dir dir, std::vector<TermId>& out);
    void labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows, std::vector<Label>& labels);
    void edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects);
    void labels(std::vector<Label>& out) const;
    LabelStats stats(Label label);
    std::uint64_t edge_count(Label label);
    std::uint64_t degree(TermId vertex, Label label, Dir dir);
    std::int64_t latest(TermId subject, Label label, TermId object);

private:
    static constexpr std::size_t kGroup = 16;         // tuples whose cache lines are asked for together
    static constexpr std::size_t kCached = 1024;      // records of a window that is still cached as a batch comes
    static constexpr std::size_t kProbedLabels = 16;  // up to so many labels are probed one by one for labels_of()

    HashedNumber* find_edge(std::uint32_t hash, TermId subject, std::uint32_t label, TermId object);
    void prefetch(std::span<const Record> edges);
    void add_record(const Record& record);
    void add_edge(RecordId id);
    void supersede(RecordId old, RecordId young);
    void expire_items(std::uint64_t until);
    void rebuild(std::uint64_t until);
    void clear_tables();
    void remove_edge(RecordId id);
    void link(RecordId id, int dir);
    void unlink(const Record& edge, int dir);

    Adjacency& adjacency(Label label, Dir dir);
    void index_all(Dir dir);
    void link_vertices_to_labels(Dir dir);
    std::uint64_t count_vertices(LabelIndex& index, Dir dir);
    std::uint64_t scan_vertices(const LabelIndex& index, Dir dir) const;
    template <class F>
    void each_edge(F&& f) const;

    RecordQueue records_;
    HashGroups<HashedNumber> edges_;  // distinct; numbers are ids of the youngest records
    LabelIndexes labels_;
    // Vertex -> its labels, where there are many labels and a query has a variable predicate.
    std::unique_ptr<Adjacency> labels_by_[2];
};

}  // namespace penstock
