// A stream that removes: its removals lie in a stream of their own, which stores nothing. A batch that has removals is
// absorbed as one change of the stored graph.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "stream/stream_impl.hpp"

namespace penstock {
namespace {

constexpr std::uint32_t kAfterRemovals = std::numeric_limits<std::uint32_t>::max();

/// Some rows of columns.
struct Rows {
    std::vector<std::int64_t> ts;
    std::vector<TermId> s, p, o;
};

/// One operation of a batch. (ts, earlier, rank) is its position: assertion number i follows all removals that arrived
/// after i assertions.
struct Operation {
    Edge edge;
    std::int64_t ts;
    std::uint32_t earlier, rank;

    bool adds() const { return rank == kAfterRemovals; }
    auto triple() const { return std::tie(edge.subject, edge.label, edge.object); }
    auto position() const { return std::tie(ts, earlier, rank); }
};

bool before(const Operation& a, const Operation& b) {
    return a.triple() != b.triple() ? a.triple() < b.triple() : a.position() < b.position();
}

}  // namespace

std::unique_ptr<Stream> Stream::Impl::new_removals() const {
    StreamOptions given;
    given.number = options.number;
    given.batch_ms = options.batch_ms;
    given.all_timing = given.of_removals = true;
    return std::make_unique<Stream>(store, dictionary, std::move(given));
}

Stream::Impl& Stream::Impl::removals() {
    if (!removals_) {
        removals_ = new_removals();
        removals_->impl_->closed = closed;
    }
    return *removals_->impl_;
}

void Stream::Impl::restore_removals(std::string_view saved) {
    removals_ = new_removals();
    removals_->restore(saved);
    const Impl& removed = *removals_->impl_;
    for (const auto& [batch, tuples] : removed.open) {
        for (const std::uint32_t number : tuples.predicate) predicates.number(removed.predicates[number].term);
    }
}

const SliceSource& Stream::removals() {
    impl_->removals();
    return *impl_->removals_;
}

const OpenBatch* Stream::Impl::open_removals(std::int64_t batch) const {
    if (!removals_) return nullptr;
    const auto& removed = removals_->impl_->open;
    const auto at = removed.find(batch);
    return at == removed.end() ? nullptr : &at->second;
}

void Stream::append_changes(std::span<const std::int64_t> ts, std::span<const TermId> s, std::span<const TermId> p,
                            std::span<const TermId> o, std::span<const std::uint8_t> removed) {
    if (removed.size() != ts.size() || s.size() != ts.size() || p.size() != ts.size() || o.size() != ts.size()) {
        throw DataError("a stream's columns differ in length");
    }
    Impl& stream = *impl_;
    Impl& gone = stream.removals();
    Rows rows[2];  // assertions, removals
    std::vector<std::uint32_t> earlier;
    std::map<std::int64_t, std::uint32_t> asserted;  // so far, by batch
    for (std::size_t row = 0; row < ts.size(); ++row) {
        Rows& to = rows[removed[row] != 0];
        to.ts.push_back(ts[row]);
        to.s.push_back(s[row]);
        to.p.push_back(p[row]);
        to.o.push_back(o[row]);
        const std::int64_t batch = batch_of(std::max(ts[row], kFirstTime), stream.options.batch_ms);
        const auto [count, fresh] = asserted.try_emplace(batch, 0);
        if (const auto open = stream.open.find(batch); fresh && open != stream.open.end()) {
            count->second = static_cast<std::uint32_t>(open->second.size());
        }
        if (removed[row] != 0) {
            earlier.push_back(count->second);
        } else {
            ++count->second;
        }
    }
    stream.prepare(ts, p, true);  // whatever may fail, for all rows
    gone.prepare(rows[1].ts, rows[1].p, true);
    append(rows[0].ts, rows[0].s, rows[0].p, rows[0].o);
    stream.removals_->append(rows[1].ts, rows[1].s, rows[1].p, rows[1].o);
    for (std::size_t row = 0; row < earlier.size(); ++row) {
        gone.open.at(batch_of(rows[1].ts[row], stream.options.batch_ms)).earlier.push_back(earlier[row]);
    }
}

void Stream::Impl::close_changes(std::int64_t batch, const OpenBatch& removed) {
    const auto at = open.find(batch);
    const OpenBatch none;
    const OpenBatch& added = at == open.end() ? none : at->second;
    Impl& gone = *removals_->impl_;
    const SliceRing::Place place = gone.write_slice(batch, removed);
    if (added.size() == 0) {
        absorb_changes(batch, added, removed);
    } else {
        const SliceRing::Place own = write_slice(batch, added);
        absorb_changes(batch, added, removed);
        publish_slice(batch, added, own);
    }
    gone.publish_slice(batch, removed, place);
    gone.erase_open(batch);
}

/// Only the last operation on each triple takes effect.
void Stream::Impl::absorb_changes(std::int64_t batch, const OpenBatch& added, const OpenBatch& removed) {
    std::vector<Operation> operations;
    operations.reserve(added.size() + removed.size());
    for (std::uint32_t row = 0; row < added.size(); ++row) {
        const Label label = predicates[added.predicate[row]].absorbed;
        if (label == 0) continue;
        operations.push_back({{added.s[row], label, added.o[row]}, added.ts[row], row, kAfterRemovals});
    }
    stored_tuples += operations.size();
    const StreamPredicates& terms = removals_->impl_->predicates;
    for (std::uint32_t row = 0; row < removed.size(); ++row) {
        const Label label = predicates[predicates.number(terms[removed.predicate[row]].term)].absorbed;
        if (label == 0) continue;
        operations.push_back({{removed.s[row], label, removed.o[row]}, removed.ts[row], removed.earlier[row], row});
    }
    std::sort(operations.begin(), operations.end(), before);
    std::vector<Edge> more, fewer;
    for (std::size_t i = 0; i < operations.size(); ++i) {
        if (i + 1 < operations.size() && operations[i].triple() == operations[i + 1].triple()) continue;
        (operations[i].adds() ? more : fewer).push_back(operations[i].edge);
    }
    for (const Edge& edge : more) {
        const TermId ends[] = {edge.subject, edge.object};
        dictionary.keep(ends, 2);
    }
    if (!operations.empty()) store.change(fewer, more, {options.number, batch});
}

}  // namespace penstock
