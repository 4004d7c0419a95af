// Private to stream*.cpp.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "stream/event_time.hpp"
#include "stream/predicates.hpp"
#include "stream/slice.hpp"
#include "stream/slice_ring.hpp"
#include "stream/stream.hpp"

namespace penstock {

struct Stream::Impl {
    /// The bytes that an open batch counts in addition to its tuples. With these, it counts at least as much as its
    /// slice, so that closing the batch does not exceed the budget.
    static constexpr std::size_t kOpenBatchBytes = 512;
    static constexpr std::size_t kOpenTupleBytes = 64;

    /// Rows [begin, end) of one append() that go to one batch.
    struct Run {
        std::int64_t batch;
        std::size_t begin, end;
    };
    struct LiveSlice {
        std::int64_t batch;
        Tick oldest_tick;  // of this slice and all later ones
        const std::byte* data;
        std::uint32_t segment;
    };

    Store& store;
    Dictionary& dictionary;
    StreamOptions options;
    StreamPredicates predicates;
    SliceRing ring;
    std::map<std::int64_t, OpenBatch> open;
    std::deque<LiveSlice> live;         // ascending batches
    std::unique_ptr<Stream> removals_;  // null before the first removal or window over removals
    std::int64_t closed = kNever;
    std::size_t open_tuples = 0, live_tuples = 0;
    std::uint64_t stored_tuples = 0;       // absorbed since construction or restore
    std::vector<Run> runs;                 // scratch of append()
    std::vector<std::uint32_t> predicate;  // scratch of append()

    Impl(Store& store, Dictionary& dictionary, StreamOptions options);

    std::size_t charged_bytes() const {
        const std::size_t removed = removals_ ? removals_->impl_->charged_bytes() : 0;
        return ring.used_bytes() + open.size() * kOpenBatchBytes + open_tuples * kOpenTupleBytes + removed;
    }
    void find_runs(std::span<const std::int64_t> ts);
    void check_budget(std::size_t rows) const;
    void prepare(std::span<const std::int64_t> ts, std::span<const TermId> p, bool checked);
    void add(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> o, bool permanent);
    std::optional<std::int64_t> first_open() const;
    void closed_to(std::int64_t batch);
    void close_batch(std::int64_t batch);
    SliceRing::Place write_slice(std::int64_t batch, const OpenBatch& tuples);
    void publish_slice(std::int64_t batch, const OpenBatch& tuples, const SliceRing::Place& place);
    void erase_open(std::int64_t batch);
    void absorb_timeless(std::int64_t batch, const OpenBatch& tuples);
    Impl& removals();
    std::unique_ptr<Stream> new_removals() const;
    void restore_removals(std::string_view saved);
    const OpenBatch* open_removals(std::int64_t batch) const;
    void close_changes(std::int64_t batch, const OpenBatch& removed);
    void absorb_changes(std::int64_t batch, const OpenBatch& added, const OpenBatch& removed);
    using Batches = std::vector<std::pair<std::int64_t, OpenBatch>>;
    void restore(std::int64_t last, std::span<const TermId> terms, Batches& sealed, Batches& unsealed);
};

}  // namespace penstock
