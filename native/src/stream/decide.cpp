// Which rows a stream takes (SEMANTICS §2).
#include <algorithm>

#include "errors.hpp"
#include "stream/event_time.hpp"
#include "stream/stream.hpp"

namespace penstock {

std::int64_t Stream::decide(std::span<const std::int64_t> ts, std::int64_t watermark, std::int64_t lateness_ms,
                            std::int64_t wall_ms, std::int64_t max_ahead_ms, std::span<Fate> fates) {
    return decide_partition(ts, watermark, watermark, kLastTime, lateness_ms, wall_ms, max_ahead_ms, fates);
}

std::int64_t Stream::decide_partition(std::span<const std::int64_t> ts, std::int64_t watermark, std::int64_t own,
                                      std::int64_t others, std::int64_t lateness_ms, std::int64_t wall_ms,
                                      std::int64_t max_ahead_ms, std::span<Fate> fates) {
    if (fates.size() != ts.size()) throw Error("decide: one fate per row is needed");
    if (lateness_ms < 0 || max_ahead_ms < 0) throw DataError("lateness and max_ahead must not be negative");
    for (std::size_t row = 0; row < ts.size(); ++row) {
        watermark = std::max(watermark, std::min(own, others));
        if (ts[row] <= watermark) {
            fates[row] = Fate::Late;
        } else if (ts[row] > add_saturating(std::max(watermark, wall_ms), max_ahead_ms)) {
            fates[row] = Fate::TooFarAhead;
        } else {
            fates[row] = Fate::Accepted;
            // Strictly below ts, so that the rest of an event, and other events at this time, are still accepted.
            own = std::max(own, subtract_saturating(ts[row] - 1, lateness_ms));
        }
    }
    return own;
}

}  // namespace penstock
