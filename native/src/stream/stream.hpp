// One stream's open batches and slices. A slice is the immutable content of one closed batch: Wukong+S's transient
// store and stream index in one structure (§4.1, §4.2; ADR 4).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rdf/dictionary.hpp"
#include "source.hpp"
#include "store/store.hpp"

namespace penstock {

enum class Outcome : std::uint8_t { Accepted = 0, Late = 1, TooFarAhead = 2 };

/// The limits with which the times of arriving tuples are compared (docs/semantics.md §2).
struct Arrival {
    std::int64_t watermark;  // before the first row
    std::int64_t lateness_ms;
    std::int64_t wall_ms;
    std::int64_t max_ahead_ms;
};

struct StreamOptions {
    std::uint32_t number = 0;  // from 1, unique in the engine
    std::int64_t batch_ms = 100;
    bool all_timing = false;
    std::vector<TermId> timing;    // timing predicates
    TermId absorb_graph = 0;       // 0 = default graph
    std::size_t memory_bytes = 0;  // of slices and open batches; 0 = no limit
    bool of_removals = false;  // whether this stream holds the removals of the stream with this number, which owns it
};

/// The closed batches of a stream, for windows.
class SliceSource {
public:
    struct SliceView {
        std::int64_t batch;
        // Columns of equal length in the order (event time, arrival).
        std::span<const std::int64_t> ts;
        std::span<const TermId> s, o;
        std::span<const Label> label;  // window label: (0, predicate)
    };

    virtual ~SliceSource() = default;
    /// Calls f for each live slice with first <= batch <= last, in order.
    virtual void slices(std::int64_t first, std::int64_t last,
                        const std::function<void(const SliceView&)>& f) const = 0;
    virtual std::int64_t closed() const = 0;  // last closed batch; kNever before the first
    virtual std::int64_t batch_ms() const = 0;
};

/// Batch k holds tuples with event time in (k*batch_ms, (k+1)*batch_ms].
class Stream final : public SliceSource {
public:
    Stream(Store& store, Dictionary& dictionary, StreamOptions options);
    ~Stream() override;

    /// Validates columns from outside. DataError unless they have equal lengths, times in (-time_limit, time_limit),
    /// and ids of dictionary terms that are permitted in their positions.
    static void check(const Dictionary& dictionary, std::span<const std::int64_t> ts, std::span<const TermId> s,
                      std::span<const TermId> p, std::span<const TermId> o, std::int64_t time_limit);

    /// Determines each row's outcome, in order (docs/semantics.md §2), without storing anything: late if ts <=
    /// watermark, too far ahead if ts > max(watermark, wall_ms) + max_ahead_ms. An accepted row raises the running
    /// watermark to ts - 1 - lateness_ms. Rows of one event are consecutive and share ts. Returns the watermark after
    /// the last row.
    static std::int64_t decide(std::span<const std::int64_t> ts, std::int64_t watermark, std::int64_t lateness_ms,
                               std::int64_t wall_ms, std::int64_t max_ahead_ms, std::span<Outcome> outcomes);

    /// The same for rows from one of several source partitions. The stream's watermark is the minimum over the
    /// partitions, and never decreases. `own`: the watermark of this partition. `others`: the minimum over the other
    /// partitions. Returns the new `own`.
    static std::int64_t decide_partition(std::span<const std::int64_t> ts, std::int64_t watermark, std::int64_t own,
                                         std::int64_t others, std::int64_t lateness_ms, std::int64_t wall_ms,
                                         std::int64_t max_ahead_ms, std::span<Outcome> outcomes);

    /// check(), decide() and append() in one, for the common case: each row is one event, all rows are accepted, and
    /// the watermark stays at or before `until`. Returns the new watermark. In any other case returns nothing and
    /// changes nothing.
    std::optional<std::int64_t> take(std::span<const std::int64_t> ts, std::span<const TermId> s,
                                     std::span<const TermId> p, std::span<const TermId> o, const Arrival& arrival,
                                     std::int64_t time_limit, std::int64_t until);

    /// Adds rows to open batches, and marks the terms of the rows as used. The batch of a row must not be closed.
    /// LimitError if the budget is exceeded. In this case, nothing has changed.
    void append(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> p,
                std::span<const TermId> o);

    /// As append(), for rows that add or remove triples. A row with `removed[row] != 0` removes its triple from the
    /// stored graph, when its batch closes. Removals are in no slice of this stream. Rows take effect in the order
    /// (event time, arrival). Removals of timing predicates have no effect; the caller rejects them.
    void append_changes(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> p,
                        std::span<const TermId> o, std::span<const std::uint8_t> removed);
    /// The slices of the removals, for windows. Valid as long as this stream.
    const SliceSource& removals();

    /// Closes every batch up to and including `batch`, oldest first. Seals each non-empty batch as a slice, absorbs its
    /// timeless tuples and removals as one commit, and records Local_VTS. The dictionary retains the terms of the added
    /// triples. Empty batches cost nothing. If there are evaluations between batches, the caller must close the batches
    /// one by one. Returns the number of non-empty batches.
    std::size_t close(std::int64_t batch);
    std::int64_t closed() const override;
    std::optional<std::int64_t> first_open() const;  // the first open batch that holds tuples

    /// States that no window needs the slices of batches up to and including `batch` any more. Recycles the memory of
    /// these slices.
    void release(std::int64_t batch);
    Tick oldest_tick() const;             // of the oldest open or live tuple; UINT64_MAX if there is none
    std::size_t live_tuples() const;      // in open batches and live slices
    std::uint64_t stored_tuples() const;  // timeless tuples absorbed since construction or restore, with repetitions
    std::size_t live_bytes() const;       // counted against memory_bytes
    std::size_t held_bytes() const;       // the region's memory, including room for the next slices

    std::string save() const;  // open batches, live slices, counters; checksummed
    void restore(std::string_view saved);

    void slices(std::int64_t first, std::int64_t last, const std::function<void(const SliceView&)>& f) const override;
    std::int64_t batch_ms() const override;

private:
    static void check_columns(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> p,
                              std::span<const TermId> o, std::int64_t time_limit);
    /// The watermark after the rows. Empty if there are no rows, or if a row is not accepted.
    static std::optional<std::int64_t> watermark_after(std::span<const std::int64_t> ts, const Arrival& arrival);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
