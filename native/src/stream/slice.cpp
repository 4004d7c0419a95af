#include "stream/slice.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace penstock {
namespace {

/// Offsets of the columns in a slice of the given number of tuples.
struct Layout {
    std::size_t ts, s, o, label, end;

    explicit Layout(std::size_t tuples)
        : ts(sizeof(SliceHeader)),
          s(ts + tuples * sizeof(std::int64_t)),
          o(s + tuples * sizeof(TermId)),
          label(o + tuples * sizeof(TermId)),
          end((label + tuples * sizeof(Label) + 7) / 8 * 8) {}
};

template <class T>
void gather(std::span<const T> from, std::span<const std::uint32_t> order, std::byte* to) {
    if (order.empty()) {
        std::memcpy(to, from.data(), from.size_bytes());
        return;
    }
    auto* out = reinterpret_cast<T*>(to);
    for (const std::uint32_t row : order) *out++ = from[row];
}

}  // namespace

std::vector<std::uint32_t> time_order(std::span<const std::int64_t> ts) {
    if (std::is_sorted(ts.begin(), ts.end())) return {};
    std::vector<std::pair<std::int64_t, std::uint32_t>> keys(ts.size());
    for (std::uint32_t row = 0; row < ts.size(); ++row) keys[row] = {ts[row], row};
    std::sort(keys.begin(), keys.end());
    std::vector<std::uint32_t> order(ts.size());
    std::transform(keys.begin(), keys.end(), order.begin(), [](const auto& key) { return key.second; });
    return order;
}

SliceWriter::SliceWriter(std::int64_t batch, const OpenBatch& open, const StreamPredicates& predicates)
    : batch_(batch),
      open_(open),
      predicates_(predicates),
      order_(time_order(open.ts)),
      bytes_(Layout(open.size()).end) {}

void SliceWriter::write(std::byte* to, std::uint64_t sequence) const {
    const SliceHeader header{sequence, bytes_, batch_, open_.size(), open_.tick};
    std::memcpy(to, &header, sizeof header);
    write_columns(to);
}

void SliceWriter::write_columns(std::byte* to) const {
    const Layout layout(open_.size());
    gather<std::int64_t>(open_.ts, order_, to + layout.ts);
    gather<TermId>(open_.s, order_, to + layout.s);
    gather<TermId>(open_.o, order_, to + layout.o);
    auto* label = reinterpret_cast<Label*>(to + layout.label);
    for (std::size_t row = 0; row < open_.size(); ++row) {
        label[row] = predicates_[open_.predicate[order_.empty() ? row : order_[row]]].window;
    }
    std::memset(label + open_.size(), 0, layout.end - layout.label - open_.size() * sizeof(Label));
}

Stream::SliceView slice_view(const std::byte* slice) {
    const SliceHeader& header = slice_header(slice);
    const std::size_t tuples = header.tuples;
    const Layout layout(tuples);
    return {header.batch,
            {reinterpret_cast<const std::int64_t*>(slice + layout.ts), tuples},
            {reinterpret_cast<const TermId*>(slice + layout.s), tuples},
            {reinterpret_cast<const TermId*>(slice + layout.o), tuples},
            {reinterpret_cast<const Label*>(slice + layout.label), tuples}};
}

}  // namespace penstock
