// Which rows a stream accepts (docs/semantics.md §2).
#include <algorithm>

#include "errors.hpp"
#include "stream/event_time.hpp"
#include "stream/stream.hpp"

namespace penstock {
namespace {

/// A tag is an id's highest bits, so the greatest id has the greatest tag.
void check_position(std::span<const TermId> ids, Tag last, const char* otherwise) {
    TermId greatest = 0;
    bool bound = true;
    for (const TermId id : ids) {
        greatest = std::max(greatest, id);
        bound &= id != kUnbound;
    }
    if (!bound) throw DataError("id 0 is no term");
    if (tag_of(greatest) > last) throw DataError(otherwise);
}

Outcome outcome_of(std::int64_t time, std::int64_t watermark, std::int64_t wall_ms, std::int64_t max_ahead_ms) {
    if (time <= watermark) return Outcome::Late;
    const bool too_far = time > add_saturating(std::max(watermark, wall_ms), max_ahead_ms);
    return too_far ? Outcome::TooFarAhead : Outcome::Accepted;
}

/// Strictly before an accepted row's time: the rest of its event, and other events at this time, are still accepted.
std::int64_t moved(std::int64_t watermark, std::int64_t time, std::int64_t lateness_ms) {
    return std::max(watermark, subtract_saturating(time - 1, lateness_ms));
}

}  // namespace

void Stream::check_columns(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> p,
                           std::span<const TermId> o, std::int64_t time_limit) {
    if (s.size() != ts.size() || p.size() != ts.size() || o.size() != ts.size())
        throw DataError("columns of unequal length");
    bool in_range = true;
    for (const std::int64_t time : ts) in_range &= -time_limit < time && time < time_limit;
    if (!in_range) throw DataError("a timestamp is out of range");
    check_position(s, Tag::Blank, "a literal cannot be a subject");
    check_position(p, Tag::Iri, "a predicate must be an IRI");
    check_position(o, Tag::String, "an object is no id of this engine's dictionary");
}

void Stream::check(const Dictionary& dictionary, std::span<const std::int64_t> ts, std::span<const TermId> s,
                   std::span<const TermId> p, std::span<const TermId> o, std::int64_t time_limit) {
    check_columns(ts, s, p, o, time_limit);
    for (const auto ids : {s, p, o}) dictionary.check(ids.data(), ids.size());
}

std::int64_t Stream::decide(std::span<const std::int64_t> ts, std::int64_t watermark, std::int64_t lateness_ms,
                            std::int64_t wall_ms, std::int64_t max_ahead_ms, std::span<Outcome> outcomes) {
    return decide_partition(ts, watermark, watermark, kLastTime, lateness_ms, wall_ms, max_ahead_ms, outcomes);
}

std::int64_t Stream::decide_partition(std::span<const std::int64_t> ts, std::int64_t watermark, std::int64_t own,
                                      std::int64_t others, std::int64_t lateness_ms, std::int64_t wall_ms,
                                      std::int64_t max_ahead_ms, std::span<Outcome> outcomes) {
    if (outcomes.size() != ts.size()) throw Error("decide: one outcome per row is needed");
    if (lateness_ms < 0 || max_ahead_ms < 0) throw DataError("lateness and max_ahead must not be negative");
    for (std::size_t row = 0; row < ts.size(); ++row) {
        watermark = std::max(watermark, std::min(own, others));
        outcomes[row] = outcome_of(ts[row], watermark, wall_ms, max_ahead_ms);
        if (outcomes[row] == Outcome::Accepted) own = moved(own, ts[row], lateness_ms);
    }
    return own;
}

std::optional<std::int64_t> Stream::watermark_after(std::span<const std::int64_t> ts, const Arrival& arrival) {
    if (ts.empty()) return std::nullopt;
    std::int64_t watermark = arrival.watermark;
    for (const std::int64_t time : ts) {
        if (outcome_of(time, watermark, arrival.wall_ms, arrival.max_ahead_ms) != Outcome::Accepted)
            return std::nullopt;
        watermark = moved(watermark, time, arrival.lateness_ms);
    }
    return watermark;
}

}  // namespace penstock
