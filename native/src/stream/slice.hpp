// The bytes of a slice: the immutable content of one closed batch, without pointers, so that other processes can map it
// and other nodes can read it in one piece.
//
//   SliceHeader | ts: i64[tuples] | s: u64[tuples] | o: u64[tuples] | label: u32[tuples], padded to 8 |
//   LabelCount[labels]
//
// Columns are in the order (event time, arrival). Integers are in the machine's order; a reader of another order would
// not recognise the region's magic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rdf/dictionary.hpp"
#include "stream/predicates.hpp"
#include "stream/stream.hpp"

namespace penstock {

struct SliceHeader {
    std::uint64_t sequence;  // of the segment it was written into (slice_ring.hpp)
    std::uint64_t bytes;     // header included; a multiple of 8
    std::int64_t batch;
    std::uint64_t tuples;
    std::uint64_t labels;  // distinct
    Tick tick;             // dictionary's tick when its first tuple came
};
static_assert(sizeof(SliceHeader) == 48);

/// Tuples of a batch that may still receive more, in the order of arrival.
struct OpenBatch {
    Tick tick = 0;
    bool kept = false;  // the dictionary keeps all its subjects and objects for ever already
    std::vector<std::int64_t> ts;
    std::vector<TermId> s, o;
    std::vector<std::uint32_t> predicate;  // numbers of StreamPredicates

    std::size_t size() const { return ts.size(); }
};

/// Arrival numbers in the order (event time, arrival); empty where that is the order of arrival already.
std::vector<std::uint32_t> time_order(std::span<const std::int64_t> ts);

/// Writes one slice: measured first, so that it can be placed, then written once.
class SliceWriter {
public:
    SliceWriter(std::int64_t batch, const OpenBatch& open, StreamPredicates& predicates);
    std::size_t bytes() const { return bytes_; }
    void write(std::byte* to, std::uint64_t sequence) const;

private:
    void write_columns(std::byte* to) const;

    std::int64_t batch_;
    const OpenBatch& open_;
    const StreamPredicates& predicates_;
    std::vector<std::uint32_t> order_;
    std::vector<LabelCount> counts_;
    std::size_t bytes_;
};

/// A slice with a further column behind all others: each tuple's number in its batch by (event time, arrival). With it
/// the parts of a batch that several nodes publish are put together in that order.
struct PartColumns {
    std::span<const std::int64_t> ts;
    std::span<const TermId> s, o;
    std::span<const Label> label;
    std::span<const std::uint32_t> position;
};
std::size_t part_bytes(std::size_t tuples);
void write_part(std::byte* to, std::uint64_t sequence, std::int64_t batch, const PartColumns& part);
/// Empty where the slice is no part.
std::span<const std::uint32_t> part_positions(const std::byte* slice);

inline const SliceHeader& slice_header(const std::byte* slice) { return *reinterpret_cast<const SliceHeader*>(slice); }
Stream::SliceView slice_view(const std::byte* slice);
std::span<const LabelCount> slice_counts(const std::byte* slice);

}  // namespace penstock
