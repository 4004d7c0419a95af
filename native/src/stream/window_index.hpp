// The merged index of a window: its tuples in order of time, its distinct edges, and per label and direction, on
// demand, a map from vertices to neighbours. Time windows and count windows differ only in the rule that determines
// which record expires next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "changing_source.hpp"
#include "source.hpp"
#include "stream/aged_groups.hpp"
#include "stream/label_indexes.hpp"
#include "stream/record_queue.hpp"
#include "stream/stream.hpp"

namespace penstock {

/// Every occurrence of a tuple is a record of the queue. The edge belongs to the youngest record, so that the expiry of
/// an older record changes nothing (docs/semantics.md §7.11, 12). Expiry does not modify lists. The lists contain
/// record ids, from which readers recognise expired values. A direction of a label is indexed from its first look-up
/// on; labels without look-ups cost only the queue and the set of edges. Look-ups therefore modify the index: external
/// synchronisation is required.
class WindowIndex {
public:
    const RecordQueue& records() const { return records_; }
    std::size_t distinct() const { return edges_.size(); }
    std::size_t bytes() const;

    /// Begins a move: the additions and expiries until the next begin_move().
    void begin_move();
    /// Adds rows [begin, end) of the slice, none of them older than the present content.
    void add(const Stream::SliceView& slice, std::size_t begin, std::size_t end);
    /// Reserves room for `tuples` more tuples.
    void reserve(std::size_t tuples);
    /// Drops all records with sequence numbers below `until`.
    void expire(std::uint64_t until);
    /// Drops everything; the next record gets the sequence number `next`. The set of indexed directions remains.
    void clear(std::uint64_t next);

    // As in Source.
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
    std::uint64_t version() const { return version_; }
    const EdgeChanges* changes();
    bool changed_since(std::uint64_t version, std::span<const TermId> keys, Label label, Dir dir,
                       std::vector<std::uint32_t>& rows);

private:
    static constexpr std::size_t kGroup = 16;         // number of tuples whose cache lines are prefetched together
    static constexpr std::size_t kProbedLabels = 16;  // labels_of() probes at most this many labels one by one
    static constexpr unsigned kRecordedMoves = 4;     // number of moves that are recorded after a request for changes
    static constexpr std::uint64_t kIdsForgotten = std::uint64_t{1}
                                                   << 29;  // number of records after which ids are forgotten

    using Edges = AgedGroups<void>;
    /// A list to which a record is to be added.
    struct Link {
        Adjacency* by;
        TermId vertex, neighbour;
        RecordId id;
        std::uint32_t hash;  // of the vertex
        int dir;
    };
    /// Tuples that are added together. Each step is done for all these tuples before the next step begins.
    struct Arrivals {
        std::span<Record> records;
        RecordId first;
        Held held;
        std::uint32_t hashes[kGroup];  // of edges
        RecordId old[kGroup];          // the earlier record with the same edge; the record's own id if there is none
        Link links[2 * kGroup];
        std::size_t link_count = 0;
    };
    /// The kind of a list that contains a record. It is the list of the subject or of the object, in the index of the
    /// record's label or in the index of all labels.
    enum List : unsigned { kOfVertex = 0, kOfLabels = 2 };
    static std::uint32_t later_in(unsigned list) { return 1u << list; }   // the record is not the list's youngest
    static std::uint32_t in_block(unsigned list) { return 16u << list; }  // the list has a block
    static TermId vertex(const Record& edge, int dir) { return dir == 0 ? edge.s : edge.o; }

    /// The hash of an edge in `edges_`.
    auto edge_hash() const {
        return [this](Edges::Place at) {
            const Record& edge = records_[at.id()];
            return hash_edge(edge.s, labels_.all()[edge.label]->label, edge.o);
        };
    }
    /// Whether a place holds the given edge.
    auto has_edge(TermId subject, std::uint32_t label, TermId object) const {
        return [=, this](Edges::Place at) {
            const Record& record = records_[at.id()];
            return record.s == subject && record.o == object && record.label == label;
        };
    }
    Edges::Place find_edge(std::uint32_t hash, TermId subject, std::uint32_t label, TermId object);
    void write(Arrivals& arrivals, const Stream::SliceView& slice, std::size_t row);
    void add_edges(Arrivals& arrivals);
    void add_links(const Arrivals& arrivals);
    void add_link(const Link& link, RecordId old, Held held);
    void add_label(const Link& link, Label label, const Adjacency::Linked& linked, Held held);
    Link link_of(const Record& edge, RecordId id, int dir);
    void link_record(RecordId id, unsigned list, const Adjacency::Linked& linked);
    bool leave(std::span<const Record> records, RecordId first);
    void forget_changes();
    void fit_tables();
    void forget_old_ids();
    template <class F>
    void each_adjacency(F&& f);

    Adjacency& adjacency(Label label, Dir dir);
    [[gnu::always_inline]] void prefetch_labels(std::span<const TermId> keys, std::size_t row, int d) const;
    void index_all(Dir dir);
    void link_vertices_to_labels(Dir dir);
    std::uint64_t count_vertices(LabelIndex& index, Dir dir);
    std::uint64_t scan_vertices(const LabelIndex& index, Dir dir);
    template <class F>
    void each_edge(F&& f);

    RecordQueue records_;
    Edges edges_;  // distinct, by their youngest records
    LabelIndexes labels_;
    // Vertex -> its labels. Built if there are many labels and a query has a variable predicate.
    std::unique_ptr<Adjacency> labels_by_[2];
    std::uint64_t forget_at_ = kIdsForgotten;
    std::uint64_t version_ = 0, before_ = 0;  // the version after the last move, and the one before
    EdgeChanges changes_;                     // of the last move, if it was recorded
    unsigned recorded_moves_ = 0;             // number of next moves to record
    bool recording_ = false;
};

}  // namespace penstock
