// The bytes of a slice: the immutable content of one closed batch. It contains no pointers, so other processes can map
// it.
//
//   SliceHeader | ts: i64[tuples] | s: u64[tuples] | o: u64[tuples] | label: u32[tuples], padded to 8
//
// Columns are in the order (event time, arrival). Integers are in the machine's byte order; a reader with another byte
// order does not recognise the region's magic.
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
    std::uint64_t sequence;  // of the segment that contains it (slice_ring.hpp)
    std::uint64_t bytes;     // header included; a multiple of 8
    std::int64_t batch;
    std::uint64_t tuples;
    Tick tick;  // the dictionary's tick at the arrival of its first tuple
};
static_assert(sizeof(SliceHeader) == 40);

/// The tuples of a batch that is not closed yet, in the order of arrival.
struct OpenBatch {
    Tick tick = 0;
    bool permanent = false;  // the dictionary already retains all its subjects and objects permanently
    std::vector<std::int64_t> ts;
    std::vector<TermId> s, o;
    std::vector<std::uint32_t> predicate;  // numbers of StreamPredicates
    // For each removal, the number of the batch's assertions that had arrived before this removal. Empty for
    // assertions.
    std::vector<std::uint32_t> earlier;

    std::size_t size() const { return ts.size(); }
};

/// Arrival numbers in the order (event time, arrival). Empty if this order equals the order of arrival.
std::vector<std::uint32_t> time_order(std::span<const std::int64_t> ts);

/// Writes one slice. The size is known before writing, so that the caller can allocate the slice and write it once.
class SliceWriter {
public:
    SliceWriter(std::int64_t batch, const OpenBatch& open, const StreamPredicates& predicates);
    std::size_t bytes() const { return bytes_; }
    void write(std::byte* to, std::uint64_t sequence) const;

private:
    void write_columns(std::byte* to) const;

    std::int64_t batch_;
    const OpenBatch& open_;
    const StreamPredicates& predicates_;
    std::vector<std::uint32_t> order_;
    std::size_t bytes_;
};

inline const SliceHeader& slice_header(const std::byte* slice) { return *reinterpret_cast<const SliceHeader*>(slice); }
Stream::SliceView slice_view(const std::byte* slice);

}  // namespace penstock
