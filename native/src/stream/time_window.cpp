#include <algorithm>
#include <string>

#include "errors.hpp"
#include "stream/event_time.hpp"
#include "stream/window.hpp"
#include "stream/window_index.hpp"

namespace penstock {

void TimeWindow::advance(std::int64_t start, std::int64_t end) {
    if (start > end) throw Error("a window's start lies after its end");
    if (start < start_ || end < end_) throw Error("a time window only moves forward");
    if (end >= kFirstTime && stream_.closed() < batch_of(end, stream_.batch_ms())) {
        throw Error("a window cannot move to " + std::to_string(end) + ": that batch is still open");
    }
    index_->begin_move();
    index_->expire(index_->records().first_after(start));
    const std::int64_t after = std::max(start, end_);
    start_ = start;
    if (after < end) take(after, end);
    end_ = end;
}

/// Adds the tuples in (after, end].
void TimeWindow::take(std::int64_t after, std::int64_t end) {
    const std::int64_t first = batch_of(std::max(after + 1, kFirstTime), stream_.batch_ms());
    const std::int64_t last = batch_of(std::max(end, kFirstTime), stream_.batch_ms());
    const auto later = [](const Stream::SliceView& slice, std::int64_t than) {
        return static_cast<std::size_t>(std::upper_bound(slice.ts.begin(), slice.ts.end(), than) - slice.ts.begin());
    };
    if (index_->records().size() == 0) {
        std::size_t tuples = 0;
        stream_.slices(first, last, [&](const auto& slice) { tuples += later(slice, end) - later(slice, after); });
        index_->reserve(tuples);
    }
    stream_.slices(first, last, [&](const auto& slice) { index_->add(slice, later(slice, after), later(slice, end)); });
}

}  // namespace penstock
