// Windows as sources: one merged index over the tuples of a window, moved forward step by step, so that a step costs what
// arrived and what expired, not what the window holds. Shared by all evaluations with the same window and pace.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "source.hpp"
#include "stream/stream.hpp"

namespace penstock {

/// Tuples with event time in (start, end]. A triple that occurs several times is one edge with its latest event time; it goes
/// when its latest occurrence expires (SEMANTICS §7.11, 12).
class TimeWindow final : public Source {
public:
    explicit TimeWindow(const Stream& stream);
    ~TimeWindow() override;
    /// Moves to (start, end]; both only grow, and every batch up to the one that holds `end` must be closed.
    void advance(std::int64_t start, std::int64_t end);
    std::size_t size() const;        // distinct tuples
    std::size_t bytes() const;

    void expand(std::span<const TermId>, Label, Dir, Matches&) const override;
    void contains(std::span<const TermId>, Label, std::span<const TermId>, std::span<std::uint8_t>) const override;
    void vertices(Label, Dir, std::vector<TermId>&) const override;
    void labels_of(std::span<const TermId>, Dir, std::vector<std::uint32_t>&, std::vector<Label>&) const override;
    void edges(Label, std::vector<TermId>&, std::vector<TermId>&) const override;
    void labels(std::vector<Label>&) const override;
    LabelStats stats(Label) const override;
    std::uint64_t degree(TermId, Label, Dir) const override;
    std::int64_t latest(TermId, Label, TermId) const override;

private:
    friend class CountWindow;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// The last n tuples after event time P in the order (event time, arrival); duplicates count in the counting, not in the
/// content (SEMANTICS §3). Same look-ups as TimeWindow.
class CountWindow final : public Source {
public:
    CountWindow(const Stream& stream, std::uint64_t size, std::uint64_t step, std::int64_t after_ms);
    ~CountWindow() override;

    struct Report {
        std::int64_t time;       // event time of the tuple that completed the step: the evaluation's t
        std::uint64_t position;  // number of tuples since P, that one included
    };
    /// Takes in batches up to `batch` (closed) and returns their reports in order; of several at one time only the last.
    std::vector<Report> take(std::int64_t batch);
    /// Content becomes the tuples with positions in (position - size, position]. Positions only grow.
    void advance(std::uint64_t position);
    /// (event time of the oldest held tuple - 1, event time of the newest]; (0, 0) where it holds none.
    std::pair<std::int64_t, std::int64_t> bounds() const;
    std::size_t size() const;
    std::size_t bytes() const;
    /// First batch whose slices it still needs in order to go on (or to be rebuilt after a restart).
    std::int64_t oldest_batch() const;

    void expand(std::span<const TermId>, Label, Dir, Matches&) const override;
    void contains(std::span<const TermId>, Label, std::span<const TermId>, std::span<std::uint8_t>) const override;
    void vertices(Label, Dir, std::vector<TermId>&) const override;
    void labels_of(std::span<const TermId>, Dir, std::vector<std::uint32_t>&, std::vector<Label>&) const override;
    void edges(Label, std::vector<TermId>&, std::vector<TermId>&) const override;
    void labels(std::vector<Label>&) const override;
    LabelStats stats(Label) const override;
    std::uint64_t degree(TermId, Label, Dir) const override;
    std::int64_t latest(TermId, Label, TermId) const override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
