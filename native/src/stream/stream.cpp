#include "stream/stream.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "errors.hpp"
#include "store/region.hpp"
#include "stream/stream_impl.hpp"

namespace penstock {
namespace {

constexpr std::size_t kMaxBatchTuples = std::numeric_limits<std::uint32_t>::max();

StreamOptions checked(StreamOptions options) {
    if (options.number == 0) throw DataError("a stream's number must not be 0");
    if (options.batch_ms <= 0) throw DataError("a stream's batch interval must be positive");
    return options;
}

std::string region_path(const Store& store, const StreamOptions& options) {
    const std::string name = "stream-" + std::to_string(options.number);
    return region_file(store.directory(), options.of_removals ? name + "-removals" : name);
}

/// A stream may only contain terms that outlive an evaluation; the store uses other tags for its own purposes.
void check_terms(std::span<const TermId> ids) {
    bool good = true;
    for (const TermId id : ids) good &= id != kUnbound && tag_of(id) <= Tag::String;
    if (!good) throw DataError("a stream's tuples hold an id that is not a term of the dictionary");
}

}  // namespace

Stream::Impl::Impl(Store& store, Dictionary& dictionary, StreamOptions given)
    : store(store),
      dictionary(dictionary),
      options(checked(std::move(given))),
      predicates(store.labels(), dictionary, options),
      ring(region_path(store, options), options.number, options.batch_ms) {}

Stream::Stream(Store& store, Dictionary& dictionary, StreamOptions options)
    : impl_(std::make_unique<Impl>(store, dictionary, std::move(options))) {}
Stream::~Stream() = default;

// ---- open batches

void Stream::Impl::find_runs(std::span<const std::int64_t> ts) {
    runs.clear();
    BatchFinder batch_at(options.batch_ms);
    for (std::size_t row = 0; row < ts.size(); ++row) {
        if (ts[row] < kFirstTime) throw DataError("event time " + std::to_string(ts[row]) + " is out of range");
        const std::int64_t batch = batch_at(ts[row]);
        if (batch <= closed) throw DataError("batch " + std::to_string(batch) + " is closed");
        if (runs.empty() || runs.back().batch != batch) runs.push_back({batch, row, row});
        runs.back().end = row + 1;
    }
}

void Stream::Impl::check_budget(std::size_t rows) const {
    std::vector<std::int64_t> fresh;
    for (const Run& run : runs) {
        const auto batch = open.find(run.batch);
        if (batch == open.end()) fresh.push_back(run.batch);
        const std::size_t held = batch == open.end() ? 0 : batch->second.size();
        if (held + rows > kMaxBatchTuples) throw LimitError("a batch cannot hold more than 4294967295 tuples");
    }
    if (options.memory_bytes == 0) return;
    std::sort(fresh.begin(), fresh.end());
    fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
    const std::size_t needed = charged_bytes() + rows * kOpenTupleBytes + fresh.size() * kOpenBatchBytes;
    if (needed > options.memory_bytes) {
        throw LimitError("stream " + std::to_string(options.number) + " would need " + std::to_string(needed) +
                         " bytes for its open batches and slices; its budget is " +
                         std::to_string(options.memory_bytes));
    }
}

/// All steps that may fail before the first row is added; fills `runs` and `predicate`. `checked`: predicates exist.
void Stream::Impl::prepare(std::span<const std::int64_t> ts, std::span<const TermId> p, bool checked) {
    find_runs(ts);
    check_budget(ts.size());
    predicate.resize(ts.size());
    for (std::size_t row = 0; row < ts.size(); ++row) predicate[row] = predicates.number(p[row], checked);
}

/// Adds the prepared rows. `permanent`: the dictionary already retains their subjects and objects permanently.
void Stream::Impl::add(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> o,
                       bool permanent) {
    const auto copy = [](auto& column, auto from, const Run& run) {
        column.insert(column.end(), from.begin() + run.begin, from.begin() + run.end);
    };
    for (const Run& run : runs) {
        const auto [at, fresh] = open.try_emplace(run.batch);
        OpenBatch& batch = at->second;
        if (fresh) batch.tick = dictionary.tick();
        batch.permanent = permanent && (fresh || batch.permanent);
        copy(batch.ts, ts, run);
        copy(batch.s, s, run);
        copy(batch.o, o, run);
        copy(batch.predicate, std::span<const std::uint32_t>(predicate), run);
        open_tuples += run.end - run.begin;
    }
}

void Stream::append(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> p,
                    std::span<const TermId> o) {
    if (s.size() != ts.size() || p.size() != ts.size() || o.size() != ts.size()) {
        throw DataError("a stream's columns differ in length");
    }
    check_terms(s);
    check_terms(p);
    check_terms(o);
    impl_->prepare(ts, p, true);
    const bool subjects_permanent = impl_->dictionary.touch(s.data(), s.size());
    const bool objects_permanent = impl_->dictionary.touch(o.data(), o.size());
    impl_->add(ts, s, o, subjects_permanent && objects_permanent);
}

std::optional<std::int64_t> Stream::take(std::span<const std::int64_t> ts, std::span<const TermId> s,
                                         std::span<const TermId> p, std::span<const TermId> o, const Arrival& arrival,
                                         std::int64_t time_limit, std::int64_t until) {
    check_columns(ts, s, p, o, time_limit);
    const auto watermark = watermark_after(ts, arrival);
    if (!watermark || *watermark > until) return std::nullopt;
    impl_->prepare(ts, p, false);
    const bool subjects_permanent = impl_->dictionary.admit(s.data(), s.size());
    const bool objects_permanent = impl_->dictionary.admit(o.data(), o.size());
    impl_->add(ts, s, o, subjects_permanent && objects_permanent);
    return watermark;
}

// ---- closing

std::size_t Stream::close(std::int64_t batch) {
    Impl& stream = *impl_;
    std::size_t held = 0;
    for (auto first = stream.first_open(); first && *first <= batch; first = stream.first_open(), ++held) {
        stream.close_batch(*first);
    }
    if (batch > stream.closed) stream.closed_to(batch);
    return held;
}

void Stream::Impl::closed_to(std::int64_t batch) {
    closed = batch;
    if (removals_) removals_->impl_->closed = batch;
    store.set_vts(options.number, batch);
}

/// Nothing changes if writing the slice or the commit fails: a slice that is not published does not exist.
void Stream::Impl::close_batch(std::int64_t batch) {
    if (const OpenBatch* removed = open_removals(batch)) {
        close_changes(batch, *removed);
    } else {
        const OpenBatch& tuples = open.begin()->second;
        const SliceRing::Place place = write_slice(batch, tuples);
        absorb_timeless(batch, tuples);
        publish_slice(batch, tuples, place);
    }
    erase_open(batch);
    closed_to(batch);
}

void Stream::Impl::erase_open(std::int64_t batch) {
    const auto at = open.find(batch);
    if (at == open.end()) return;
    open_tuples -= at->second.size();
    open.erase(at);
}

SliceRing::Place Stream::Impl::write_slice(std::int64_t batch, const OpenBatch& tuples) {
    const SliceWriter writer(batch, tuples, predicates);
    const SliceRing::Place place = ring.place(writer.bytes());
    writer.write(place.data, place.sequence);
    return place;
}

void Stream::Impl::publish_slice(std::int64_t batch, const OpenBatch& tuples, const SliceRing::Place& place) {
    ring.publish(place);
    // Batches open in almost any order, but slices are freed oldest first: until this one is, its terms are in use.
    for (auto before = live.rbegin(); before != live.rend() && before->oldest_tick > tuples.tick; ++before) {
        before->oldest_tick = tuples.tick;
    }
    live.push_back({batch, tuples.tick, place.data, place.segment});
    live_tuples += tuples.size();
}

void Stream::Impl::absorb_timeless(std::int64_t batch, const OpenBatch& tuples) {
    std::vector<Edge> edges;
    edges.reserve(tuples.size());
    for (std::size_t row = 0; row < tuples.size(); ++row) {
        const Label label = predicates[tuples.predicate[row]].absorbed;
        if (label != 0) edges.push_back({tuples.s[row], label, tuples.o[row]});
    }
    if (edges.empty()) return;
    if (tuples.permanent) {
        // permanent already, as most repeated terms are
    } else if (edges.size() == tuples.size()) {
        dictionary.keep(tuples.s.data(), tuples.size());
        dictionary.keep(tuples.o.data(), tuples.size());
    } else {
        for (const Edge& edge : edges) {
            const TermId ends[] = {edge.subject, edge.object};
            dictionary.keep(ends, 2);
        }
    }
    store.commit(edges, {options.number, batch});
    stored_tuples += edges.size();
}

std::int64_t Stream::closed() const { return impl_->closed; }
std::int64_t Stream::batch_ms() const { return impl_->options.batch_ms; }

std::optional<std::int64_t> Stream::first_open() const { return impl_->first_open(); }

std::optional<std::int64_t> Stream::Impl::first_open() const {
    const auto first = open.empty() ? std::nullopt : std::optional(open.begin()->first);
    const auto removed = removals_ ? removals_->impl_->first_open() : std::nullopt;
    return first && removed ? std::min(first, removed) : first ? first : removed;
}

// ---- live slices

void Stream::release(std::int64_t batch) {
    Impl& stream = *impl_;
    while (!stream.live.empty() && stream.live.front().batch <= batch) {
        const Impl::LiveSlice& slice = stream.live.front();
        const SliceHeader header = slice_header(slice.data);
        stream.live_tuples -= header.tuples;
        stream.ring.free(slice.segment, header.bytes);
        stream.live.pop_front();
    }
    if (stream.removals_) stream.removals_->release(batch);
}

Tick Stream::oldest_tick() const {
    Tick oldest = impl_->live.empty() ? std::numeric_limits<Tick>::max() : impl_->live.front().oldest_tick;
    for (const auto& [batch, tuples] : impl_->open) oldest = std::min(oldest, tuples.tick);
    return impl_->removals_ ? std::min(oldest, impl_->removals_->oldest_tick()) : oldest;
}

std::size_t Stream::live_tuples() const {
    const std::size_t removed = impl_->removals_ ? impl_->removals_->live_tuples() : 0;
    return impl_->open_tuples + impl_->live_tuples + removed;
}
std::uint64_t Stream::stored_tuples() const { return impl_->stored_tuples; }
std::size_t Stream::live_bytes() const { return impl_->charged_bytes(); }
std::size_t Stream::held_bytes() const {
    return impl_->ring.held_bytes() + (impl_->removals_ ? impl_->removals_->held_bytes() : 0);
}

void Stream::slices(std::int64_t first, std::int64_t last, const std::function<void(const SliceView&)>& f) const {
    const auto& live = impl_->live;
    auto slice =
        std::lower_bound(live.begin(), live.end(), first, [](const auto& a, std::int64_t b) { return a.batch < b; });
    for (; slice != live.end() && slice->batch <= last; ++slice) f(slice_view(slice->data));
}

}  // namespace penstock
