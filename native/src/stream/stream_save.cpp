// A stream in a checkpoint. Slices and open batches have the same form: columns, with numbers for predicates.
#include <utility>

#include "bytes.hpp"
#include "errors.hpp"
#include "stream/stream_impl.hpp"

namespace penstock {
namespace {

constexpr std::string_view kMagic = "PnStrm01";
constexpr std::string_view kMagicOfChanges = "PnStrm02";  // followed by the removals

template <class T>
std::span<const T> column(const std::vector<T>& values) {
    return values;
}

void put_batch(ByteWriter& out, std::int64_t batch, std::span<const std::int64_t> ts, std::span<const TermId> s,
               std::span<const TermId> o, std::span<const std::uint32_t> predicate) {
    out.put(batch);
    out.put_column(ts);
    out.put_column(s);
    out.put_column(o);
    out.put_column(predicate);
}

/// A batch whose predicates are numbers of the saved table.
std::pair<std::int64_t, OpenBatch> get_batch(ByteReader& in, std::size_t predicates) {
    const auto batch = in.get<std::int64_t>();
    OpenBatch tuples;
    tuples.ts = in.get_column<std::int64_t>();
    tuples.s = in.get_column<TermId>();
    tuples.o = in.get_column<TermId>();
    tuples.predicate = in.get_column<std::uint32_t>();
    const std::size_t size = tuples.size();
    bool good = size > 0 && tuples.s.size() == size && tuples.o.size() == size && tuples.predicate.size() == size;
    for (const std::uint32_t number : tuples.predicate) good &= number < predicates;
    if (!good) throw StorageError("the saved stream has a batch whose columns do not fit together");
    return {batch, std::move(tuples)};
}

}  // namespace

std::string Stream::save() const {
    const Impl& stream = *impl_;
    ByteWriter out(stream.removals_ ? kMagicOfChanges : kMagic);
    out.put(stream.options.number);
    out.put(stream.options.batch_ms);
    out.put(stream.closed);

    // Label numbers are valid in this run's table only; terms survive a restart.
    std::vector<TermId> predicates;
    std::unordered_map<Label, std::uint32_t> by_label;
    for (std::uint32_t number = 0; number < stream.predicates.size(); ++number) {
        predicates.push_back(stream.predicates[number].term);
        by_label.emplace(stream.predicates[number].window, number);
    }
    out.put_column(column(predicates));

    out.put<std::uint64_t>(stream.live.size());
    std::vector<std::uint32_t> numbers;
    for (const Impl::LiveSlice& live : stream.live) {
        const SliceView slice = slice_view(live.data);
        numbers.clear();
        for (const Label label : slice.label) numbers.push_back(by_label.at(label));
        put_batch(out, slice.batch, slice.ts, slice.s, slice.o, numbers);
    }
    out.put<std::uint64_t>(stream.open.size());
    for (const auto& [batch, tuples] : stream.open) {
        put_batch(out, batch, tuples.ts, tuples.s, tuples.o, tuples.predicate);
        if (stream.options.of_removals) out.put_column(column(tuples.earlier));
    }
    if (stream.removals_) out.put_text(stream.removals_->save());
    return out.finish();
}

void Stream::restore(std::string_view saved) {
    Impl& stream = *impl_;
    if (stream.closed != kNever || live_tuples() > 0) throw Error("a stream is restored when it is new");
    const bool changes = saved.starts_with(kMagicOfChanges);
    ByteReader in(saved, changes ? kMagicOfChanges : kMagic, "stream");
    if (in.get<std::uint32_t>() != stream.options.number || in.get<std::int64_t>() != stream.options.batch_ms) {
        throw StorageError("the saved stream has another number or batch interval");
    }
    const auto closed = in.get<std::int64_t>();
    const std::vector<TermId> predicates = in.get_column<TermId>();
    std::vector<std::pair<std::int64_t, OpenBatch>> batches[2];  // closed, open
    for (auto& some : batches) {
        for (auto left = in.get<std::uint64_t>(); left > 0; --left) {
            some.push_back(get_batch(in, predicates.size()));
            OpenBatch& tuples = some.back().second;
            if (!stream.options.of_removals || &some == &batches[0]) continue;
            tuples.earlier = in.get_column<std::uint32_t>();
            if (tuples.earlier.size() != tuples.size()) throw StorageError("the saved removals do not fit together");
        }
    }
    const std::string removals = changes ? in.get_text() : std::string();
    in.finish();
    stream.restore(closed, predicates, batches[0], batches[1]);
    if (changes) stream.restore_removals(removals);
}

void Stream::Impl::restore(std::int64_t last, std::span<const TermId> terms, Batches& sealed, Batches& unsealed) {
    std::vector<std::uint32_t> numbers;
    for (const TermId term : terms) numbers.push_back(predicates.number(term));
    for (Batches* batches : {&sealed, &unsealed}) {
        for (auto& [batch, tuples] : *batches) {
            for (std::uint32_t& number : tuples.predicate) number = numbers[number];
            // Ticks belong to the dictionary, which starts them afresh.
            dictionary.touch(tuples.s.data(), tuples.s.size());
            dictionary.touch(tuples.o.data(), tuples.o.size());
            tuples.tick = dictionary.tick();
        }
    }
    for (const auto& [batch, tuples] : sealed) publish_slice(batch, tuples, write_slice(batch, tuples));
    for (auto& [batch, tuples] : unsealed) {
        open_tuples += tuples.size();
        open.emplace(batch, std::move(tuples));
    }
    closed = last;
    if (closed != kNever && !options.of_removals) store.set_vts(options.number, closed);
}

}  // namespace penstock
