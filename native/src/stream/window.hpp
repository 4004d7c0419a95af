// Windows as sources: one merged index over the tuples of a window. The index moves forward incrementally. The cost of
// a step therefore depends on the tuples that arrive and expire, not on the size of the window. All evaluations with
// the same window and trigger share a window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "changing_source.hpp"
#include "source.hpp"
#include "stream/stream.hpp"

namespace penstock {

class WindowIndex;

/// The common part of windows. An index is built when a look-up first asks for its label and direction. Look-ups
/// therefore modify the window: external synchronisation is required. The stream must outlive the window.
///
/// stats(): counts of distinct vertices are exact for directions that look-ups have used. For other directions, the
/// counts are possibly from a moment when the label had more or fewer edges, by at most an eighth. latest() is the time
/// of the latest occurrence.
class Window : public ChangingSource {
public:
    ~Window() override;
    std::size_t size() const;  // distinct tuples
    std::size_t bytes() const;

    void expand(std::span<const TermId>, Label, Dir, Matches&) const final;
    void contains(std::span<const TermId>, Label, std::span<const TermId>, std::span<std::uint8_t>) const final;
    void vertices(Label, Dir, std::vector<TermId>&) const final;
    void labels_of(std::span<const TermId>, Dir, std::vector<std::uint32_t>&, std::vector<Label>&) const final;
    void edges(Label, std::vector<TermId>&, std::vector<TermId>&) const final;
    void labels(std::vector<Label>&) const final;
    LabelStats stats(Label) const final;
    std::uint64_t edge_count(Label) const final;
    std::uint64_t degree(TermId, Label, Dir) const final;
    std::int64_t latest(TermId, Label, TermId) const final;
    std::uint64_t version() const final;
    bool changed_since(std::uint64_t, std::span<const TermId>, Label, Dir, std::vector<std::uint32_t>&) const final;
    const EdgeChanges* changes() const final;

protected:
    explicit Window(const SliceSource& stream);
    const SliceSource& stream_;
    std::unique_ptr<WindowIndex> index_;
};

/// Tuples with event time in (start, end]. A triple that occurs several times is one edge with its latest event time;
/// it expires with its latest occurrence (docs/semantics.md §7.11, 12).
class TimeWindow final : public Window {
public:
    explicit TimeWindow(const SliceSource& stream) : Window(stream) {}
    /// Moves to (start, end]; neither may decrease, and every batch up to the one that holds `end` must be closed. The
    /// window copies the data that it needs. The slices of (start, end] can therefore be released afterwards.
    void advance(std::int64_t start, std::int64_t end);

private:
    void take(std::int64_t after, std::int64_t end);
    std::int64_t start_ = kNever, end_ = kNever;
};

/// The last n tuples after event time P in the order (event time, arrival). Duplicates count towards n, but occur once
/// in the content (docs/semantics.md §3). Same look-ups as TimeWindow.
class CountWindow final : public Window {
public:
    CountWindow(const SliceSource& stream, std::uint64_t size, std::uint64_t step, std::int64_t after_ms);

    struct Report {
        std::int64_t time;       // event time of the tuple that completed the step: the evaluation's t
        std::uint64_t position;  // number of tuples since P, including that one
        bool operator==(const Report&) const = default;
    };
    /// Ingests the closed batches up to and including `batch`, and returns their reports in order. Of several reports
    /// with the same time, returns only the last report.
    std::vector<Report> take(std::int64_t batch);
    /// Moves the content to the tuples with positions in (position - size, position]. Positions must not decrease, and
    /// must not exceed the number of tuples that take() has counted.
    void advance(std::uint64_t position);
    /// (event time of the oldest tuple - 1, event time of the newest]; (0, 0) if the window is empty.
    std::pair<std::int64_t, std::int64_t> bounds() const;
    /// The first batch whose slice is still needed, to continue or for restore() after a restart.
    std::int64_t oldest_batch() const;

    /// Returns the counters. They must be saved, because after a restart, the stream no longer has all tuples since P.
    std::string save() const;
    /// Restores a new window with the same size, step and P, over the restored stream. StorageError if they do not
    /// match.
    void restore(std::string_view saved);

private:
    /// A batch that was counted and is still needed.
    struct Taken {
        std::int64_t batch;
        std::uint64_t before;   // position of the last tuple before the batch
        std::uint64_t skipped;  // rows of its slice that do not count: at or before P
        std::uint64_t count;
    };
    void report(const Stream::SliceView& slice, const Taken& taken, std::vector<Report>& reports) const;
    void forget_taken();

    std::uint64_t size_, step_;
    std::int64_t after_ms_;
    std::int64_t taken_ = kNever;  // last batch ingested
    std::uint64_t counted_ = 0;    // tuples since P in batches up to taken_
    std::uint64_t position_ = 0;
    std::deque<Taken> batches_;
};

}  // namespace penstock
