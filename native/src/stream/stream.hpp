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

enum class Fate : std::uint8_t { Accepted = 0, Late = 1, TooFarAhead = 2 };

/// What times of arriving tuples are measured against (docs/semantics.md §2).
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
};

/// The closed batches of a stream, for windows: those of this process (Stream), or copies of what nodes publish
/// (remote::RemoteSlices).
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

/// Ticks, tuples and bytes are plain numbers; batch k holds tuples with event time in (k*batch_ms, (k+1)*batch_ms].
class Stream final : public SliceSource {
public:
    Stream(Store& store, Dictionary& dictionary, StreamOptions options);
    ~Stream() override;

    /// DataError unless the columns, which come from outside, can be tuples: equal lengths, times in (-time_limit,
    /// time_limit), ids of the dictionary's terms where such terms can stand.
    static void check(const Dictionary& dictionary, std::span<const std::int64_t> ts, std::span<const TermId> s,
                      std::span<const TermId> p, std::span<const TermId> o, std::int64_t time_limit);

    /// Decides each row's fate in order (docs/semantics.md §2) without storing anything: late where ts <= watermark,
    /// too far ahead where ts > max(watermark, wall_ms) + max_ahead_ms; an accepted row moves the running watermark to
    /// ts - 1 - lateness_ms. Rows of one event are consecutive and share ts. Returns the watermark after the last row.
    static std::int64_t decide(std::span<const std::int64_t> ts, std::int64_t watermark, std::int64_t lateness_ms,
                               std::int64_t wall_ms, std::int64_t max_ahead_ms, std::span<Fate> fates);

    /// The same for rows of one of several source partitions: the stream's watermark is the least of theirs, and never
    /// goes back. `own` is how far this partition has come, `others` the least of the others. Returns the new `own`.
    static std::int64_t decide_partition(std::span<const std::int64_t> ts, std::int64_t watermark, std::int64_t own,
                                         std::int64_t others, std::int64_t lateness_ms, std::int64_t wall_ms,
                                         std::int64_t max_ahead_ms, std::span<Fate> fates);

    /// check(), decide() and append() in one, for the usual case of rows that are an event each: all are accepted, and
    /// the watermark stays at or before `until`. Returns it; where that is not so, nothing, and nothing has changed.
    std::optional<std::int64_t> take(std::span<const std::int64_t> ts, std::span<const TermId> s,
                                     std::span<const TermId> p, std::span<const TermId> o, const Arrival& arrival,
                                     std::int64_t time_limit, std::int64_t until);

    /// Adds rows to open batches (their batch must not be closed), touching their terms. LimitError where the budget is
    /// exceeded, before anything changes.
    void append(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> p,
                std::span<const TermId> o);

    /// Closes every batch up to and including `batch`, oldest first: seals each non-empty one as slices, absorbs its
    /// timeless tuples (one commit per batch; their terms are kept), records Local_VTS. Batches without tuples cost
    /// nothing. The caller closes batch by batch where evaluations lie between. Returns how many held tuples.
    std::size_t close(std::int64_t batch);
    std::int64_t closed() const override;
    std::optional<std::int64_t> first_open() const;  // number of the first open batch that holds tuples

    /// Slices of batches up to and including `batch` are needed by no window any more; their memory is recycled.
    void release(std::int64_t batch);
    Tick oldest_tick() const;             // tick of the oldest open or live tuple; UINT64_MAX where none
    std::size_t live_tuples() const;      // of open batches and live slices
    std::uint64_t stored_tuples() const;  // timeless tuples absorbed since it was made or restored; repeats count
    std::size_t live_bytes() const;       // what they count against memory_bytes
    std::size_t held_bytes() const;       // of the region's memory, room for the next slices included

    std::string save() const;  // open batches, live slices, counters; checksummed
    void restore(std::string_view saved);

    void slices(std::int64_t first, std::int64_t last, const std::function<void(const SliceView&)>& f) const override;
    std::int64_t batch_ms() const override;

private:
    static void check_columns(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> p,
                              std::span<const TermId> o, std::int64_t time_limit);
    /// The watermark after the rows, where there are some and all are accepted.
    static std::optional<std::int64_t> watermark_after(std::span<const std::int64_t> ts, const Arrival& arrival);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
