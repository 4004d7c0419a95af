#include <algorithm>

#include "bytes.hpp"
#include "errors.hpp"
#include "stream/event_time.hpp"
#include "stream/window.hpp"
#include "stream/window_index.hpp"

namespace penstock {
namespace {

constexpr std::string_view kMagic = "PnCount1";

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

CountWindow::CountWindow(const SliceSource& stream, std::uint64_t size, std::uint64_t step, std::int64_t after_ms)
    : Window(stream), size_(size), step_(step), after_ms_(after_ms) {
    if (size == 0 || step == 0) throw DataError("a count window's size and step must be positive");
    if (size > RecordQueue::kMaxRecords) {
        throw LimitError("a window cannot hold more than " + std::to_string(RecordQueue::kMaxRecords) + " tuples");
    }
    if (after_ms >= kFirstTime) taken_ = batch_of(after_ms, stream.batch_ms()) - 1;
}

std::vector<CountWindow::Report> CountWindow::take(std::int64_t batch) {
    std::vector<Report> reports;
    if (batch <= taken_) return reports;
    if (batch > stream_.closed()) throw Error("a count window cannot read a batch that is still open");
    stream_.slices(taken_ + 1, batch, [&](const Stream::SliceView& slice) {
        const auto first = std::upper_bound(slice.ts.begin(), slice.ts.end(), after_ms_);
        const auto skipped = static_cast<std::uint64_t>(first - slice.ts.begin());
        const Taken taken{slice.batch, counted_, skipped, slice.ts.size() - skipped};
        if (taken.count == 0) return;
        report(slice, taken, reports);
        batches_.push_back(taken);
        counted_ += taken.count;
    });
    taken_ = batch;
    forget_taken();
    return reports;
}

void CountWindow::report(const Stream::SliceView& slice, const Taken& taken, std::vector<Report>& reports) const {
    std::uint64_t left = taken.count;  // tuples of this slice after the last report
    for (std::uint64_t due = step_ - taken.before % step_; due <= left; due = step_) {
        left -= due;
        const std::uint64_t nth = taken.count - left;
        const Report report{slice.ts[taken.skipped + nth - 1], taken.before + nth};
        if (!reports.empty() && reports.back().time == report.time)
            reports.back() = report;
        else
            reports.push_back(report);
    }
}

void CountWindow::advance(std::uint64_t position) {
    if (position < position_) throw Error("a count window only moves forward");
    if (position > counted_) throw Error("a count window cannot move beyond the tuples that it has read");
    const std::uint64_t start = minus(position, size_);
    const RecordQueue& held = index_->records();  // sequence number n = position n + 1
    index_->begin_move();
    if (start >= held.tail())
        index_->clear(start);
    else
        index_->expire(start);
    for (const Taken& taken : batches_) {
        const std::uint64_t begin = std::max(held.tail(), taken.before);
        const std::uint64_t end = std::min(position, taken.before + taken.count);
        if (begin >= end) continue;
        stream_.slices(taken.batch, taken.batch, [&](const Stream::SliceView& slice) {
            const std::uint64_t row = taken.skipped + begin - taken.before;
            index_->add(slice, row, row + (end - begin));
        });
    }
    position_ = position;
    forget_taken();
}

/// Drops the tuples before the content and before that of the next report.
void CountWindow::forget_taken() {
    const std::uint64_t next = position_ == 0 ? step_ : position_;
    const std::uint64_t needed = minus(next, size_);
    while (!batches_.empty() && batches_.front().before + batches_.front().count <= needed) batches_.pop_front();
}

std::pair<std::int64_t, std::int64_t> CountWindow::bounds() const {
    const RecordQueue& held = index_->records();
    if (held.size() == 0) return {0, 0};
    return {held.at(held.head()).ts - 1, held.at(held.tail() - 1).ts};
}

std::int64_t CountWindow::oldest_batch() const {
    if (!batches_.empty()) return batches_.front().batch;
    return taken_ == kNever ? kNever : taken_ + 1;
}

std::string CountWindow::save() const {
    ByteWriter out(kMagic);
    out.put(size_);
    out.put(step_);
    out.put(after_ms_);
    out.put(taken_);
    out.put(position_);
    out.put(oldest_batch());
    out.put(batches_.empty() ? counted_ : batches_.front().before);
    return out.finish();
}

void CountWindow::restore(std::string_view saved) {
    if (counted_ != 0) throw Error("a count window is restored when it is new");
    ByteReader in(saved, kMagic, "count window");
    if (in.get<std::uint64_t>() != size_ || in.get<std::uint64_t>() != step_ || in.get<std::int64_t>() != after_ms_) {
        throw StorageError("the saved count window has another size, step or beginning");
    }
    const auto taken = in.get<std::int64_t>();
    const auto position = in.get<std::uint64_t>();
    const auto oldest = in.get<std::int64_t>();
    const auto before = in.get<std::uint64_t>();
    in.finish();
    if (taken == kNever) return;
    taken_ = oldest - 1;
    counted_ = before;
    position_ = position;
    take(taken);
    if (counted_ < position) throw StorageError("the stream no longer holds the tuples of the saved count window");
    advance(position);
}

}  // namespace penstock
