// The tuples of a window in the order (event time, arrival). Each occurrence is one record, added at the back and
// dropped from the front.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "source.hpp"

namespace penstock {

/// The name of a record while it is in the queue: the low half of its sequence number.
using RecordId = std::uint32_t;

struct Record {
    static constexpr std::uint32_t kSuperseded = ~0u;
    std::int64_t ts;
    TermId s, o;
    std::uint32_t label;  // number in LabelIndexes; kSuperseded if the same edge has occurred again
    std::uint32_t links;  // flags of the lists of an index that contain it (window_index.hpp)

    bool is_edge() const { return label != kSuperseded; }
};
static_assert(sizeof(Record) == 32);

/// The records in the queue: `size` records from `head` on, modulo 2^32.
struct Held {
    RecordId head;
    std::uint32_t size;

    bool has(RecordId id) const { return id - head < size; }
    /// Larger for older records.
    std::uint32_t age(RecordId id) const { return head + size - id; }
    /// An id that is not held and will not be held soon.
    RecordId none() const { return head - 1; }
};

/// A chunked deque: growth copies nothing, and empty chunks are freed.
class RecordQueue {
public:
    static constexpr std::uint64_t kMaxRecords = std::uint64_t{1} << 31;

    std::uint64_t head() const { return head_; }  // sequence number of the first record
    std::uint64_t tail() const { return tail_; }  // one past the last
    std::uint64_t size() const { return tail_ - head_; }

    Record& operator[](RecordId id) { return chunks_[(id / kChunk) & (chunks_.size() - 1)][id % kChunk]; }
    const Record& operator[](RecordId id) const { return chunks_[(id / kChunk) & (chunks_.size() - 1)][id % kChunk]; }
    const Record& at(std::uint64_t sequence) const { return (*this)[static_cast<RecordId>(sequence)]; }

    /// The contiguous records from `begin` on, and before `end`.
    std::span<const Record> run(std::uint64_t begin, std::uint64_t end) const {
        return {&at(begin), std::min(end, (begin / kChunk + 1) * kChunk) - begin};
    }

    Held held() const { return {static_cast<RecordId>(head_), static_cast<std::uint32_t>(size())}; }

    /// Appends between one and `records` contiguous records. The caller must write them before any other call.
    std::span<Record> extend(std::size_t records) {
        if (tail_ % kChunk == 0 || size() == 0) add_chunk();
        Record* const first = &(*this)[static_cast<RecordId>(tail_)];
        records = std::min<std::size_t>(records, kChunk - tail_ % kChunk);
        tail_ += records;
        return {first, records};
    }

    /// Drops the records with sequence numbers below `until`.
    void drop(std::uint64_t until) {
        while (head_ < until) {
            const std::uint64_t end = (head_ / kChunk + 1) * kChunk;
            if (end <= until || until == tail_) chunk(head_).reset();
            head_ = end < until ? end : until;
        }
    }

    /// Empties the queue; the next record gets the sequence number `next`.
    void reset(std::uint64_t next) {
        chunks_.clear();
        head_ = tail_ = next;
    }

    /// The first record of the queue with a time later than `ts`.
    std::uint64_t first_after(std::int64_t ts) const {
        std::uint64_t low = head_, high = tail_;
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            if (at(middle).ts <= ts)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    std::size_t bytes() const {
        const std::size_t chunks = size() == 0 ? 0 : (tail_ - 1) / kChunk - head_ / kChunk + 1;
        return chunks * kChunk * sizeof(Record) + chunks_.capacity() * sizeof(chunks_[0]);
    }

private:
    static constexpr std::uint64_t kChunk = 256;
    using Chunk = std::unique_ptr<Record[]>;

    Chunk& chunk(std::uint64_t sequence) { return chunks_[(sequence / kChunk) & (chunks_.size() - 1)]; }

    void add_chunk() {
        const std::uint64_t needed = size() == 0 ? 1 : tail_ / kChunk - head_ / kChunk + 1;
        if (needed > chunks_.size()) resize_directory(2 * chunks_.size() + (chunks_.empty() ? 1 : 0));
        chunk(tail_).reset(new Record[kChunk]);
    }

    void resize_directory(std::size_t slots) {
        std::vector<Chunk> old(slots);
        old.swap(chunks_);
        if (size() == 0) return;
        for (std::uint64_t number = head_ / kChunk; number <= (tail_ - 1) / kChunk; ++number) {
            chunks_[number & (slots - 1)] = std::move(old[number & (old.size() - 1)]);
        }
    }

    std::vector<Chunk> chunks_;  // chunk n is at n modulo the size, a power of two
    std::uint64_t head_ = 0, tail_ = 0;
};

}  // namespace penstock
