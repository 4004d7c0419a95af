#include "exec/indexed_seed.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "errors.hpp"
#include "mix.hpp"

namespace penstock::exec {

namespace {

constexpr std::uint32_t kMostRows = 0xFFFFFFFF;
constexpr std::uint64_t kRowsPerEdge = 2;  // a look-up of an edge's vertex costs about as much as this number of rows
constexpr std::size_t kBlock = 16;         // values whose memory is fetched at the same time
constexpr std::size_t kBits = 64;

std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last = 0;
    return last.fetch_add(1, std::memory_order_relaxed) + 1;  // unique only; orders nothing
}

}  // namespace

IndexedSeed::IndexedSeed(Table table)
    : table_(std::move(table)), indexes_(table_.columns.size()), number_(next_number()) {
    if (table_.rows >= kMostRows) throw DataError("a seed has too many rows");
}

std::size_t IndexedSeed::bytes() const {
    std::size_t bytes = marked_.capacity() * sizeof(marked_[0]);
    for (const Column& column : table_.columns) bytes += column.capacity() * sizeof(TermId);
    for (const Index& index : indexes_)
        bytes += index.starts.capacity() * sizeof(std::uint32_t) + index.entries.capacity() * sizeof(Entry);
    return bytes;
}

void IndexedSeed::begin_run(const std::vector<Slot>& slots) {
    if (slots.size() != table_.columns.size()) throw Error("the seed needs a column for each of the plan's seed slots");
    table_.slots = slots;
    ++runs_;
}

bool IndexedSeed::pays(std::uint64_t edges) const {
    const std::uint64_t least = from.load(std::memory_order_relaxed);
    if (least == 0) return true;
    return runs_ > 1 && table_.rows >= least && edges <= table_.rows / kRowsPerEdge;
}

const IndexedSeed::Index& IndexedSeed::index(std::size_t column) {
    Index& made = indexes_[column];
    if (!made.starts.empty()) return made;
    const Column& values = table_.columns[column];
    const std::size_t hashes = std::bit_ceil(std::max<std::size_t>(values.size(), 2));
    const auto hash = [&](TermId value) { return mix(value) & (hashes - 1); };
    LargeVector<std::uint32_t> starts(hashes + 1);
    for (const TermId value : values) ++starts[hash(value)];
    std::uint32_t end = 0;
    for (std::uint32_t& start : starts) start = end += start;
    made.entries.resize(values.size());
    for (std::size_t row = values.size(); row-- > 0;)  // each start moves from the end of its entries to the first one
        made.entries[--starts[hash(values[row])]] = {values[row], static_cast<std::uint32_t>(row)};
    made.starts = std::move(starts);
    return made;
}

/// Calls visit(i, row) for each row whose value in the column is values[i], ascending by i, until visit returns false.
/// The look-ups of a block have three stages, each of which prefetches what the next one reads. While one stage of a
/// block runs, the memory for the other stages of the blocks after it is under way.
template <class Visit>
bool IndexedSeed::look_up(std::size_t column, std::span<const TermId> values, Visit visit) {
    struct Range {
        std::uint32_t first, last;
    };
    constexpr std::size_t kStages = 3;
    const auto& [starts, entries] = index(column);
    const std::size_t mask = starts.size() - 2;
    std::array<std::array<Range, kBlock>, kStages> ranges;
    const std::size_t blocks = (values.size() + kBlock - 1) / kBlock;
    const auto block = [values](std::size_t number) {
        const std::size_t from = number * kBlock;
        return values.subspan(from, std::min(kBlock, values.size() - from));
    };
    for (std::size_t step = 0; step < blocks + kStages - 1; ++step) {
        if (step < blocks) {
            Range* range = ranges[step % kStages].data();
            for (const TermId value : block(step)) {
                range->first = static_cast<std::uint32_t>(mix(value) & mask);
                __builtin_prefetch(&starts[range++->first]);
            }
        }
        if (step >= 1 && step <= blocks) {
            for (Range& range : std::span(ranges[(step - 1) % kStages]).first(block(step - 1).size())) {
                range = {starts[range.first], starts[range.first + 1]};
                __builtin_prefetch(entries.data() + range.first);
            }
        }
        if (step < 2) continue;
        const Range* range = ranges[(step - 2) % kStages].data();
        std::size_t i = (step - 2) * kBlock;
        for (const TermId value : block(step - 2)) {
            for (std::uint32_t at = range->first; at != range->last; ++at)
                if (entries[at].value == value && !visit(i, entries[at].row)) return false;
            ++range;
            ++i;
        }
    }
    return true;
}

void IndexedSeed::mark(std::uint32_t row) { marked_[row / kBits] |= std::uint64_t{1} << (row % kBits); }

/// Sets `rows` to the marked rows, and removes the marks.
void IndexedSeed::take_marked(std::vector<std::uint32_t>& rows) {
    rows.clear();
    for (std::size_t word = 0; word < marked_.size(); ++word) {
        for (std::uint64_t bits = std::exchange(marked_[word], 0); bits != 0; bits &= bits - 1)
            rows.push_back(static_cast<std::uint32_t>(word * kBits + static_cast<std::size_t>(std::countr_zero(bits))));
    }
}

void IndexedSeed::rows_with(std::size_t column, std::span<const TermId> values, std::vector<std::uint32_t>& rows) {
    marked_.resize((table_.rows + kBits - 1) / kBits);
    look_up(column, values, [this](std::size_t, std::uint32_t row) {
        mark(row);
        return true;
    });
    take_marked(rows);
}

/// A counting sort of the matches. The index of a row is the number of marked rows before it.
bool IndexedSeed::join(std::size_t column, std::span<const TermId> keys, std::span<const TermId> values,
                       std::vector<std::uint32_t>& rows, Matches& found) {
    marked_.resize((table_.rows + kBits - 1) / kBits);
    matches_.clear();
    const std::size_t most = std::max(table_.rows, keys.size());
    const bool few = look_up(column, keys, [&](std::size_t key, std::uint32_t row) {
        mark(row);
        matches_.push_back({static_cast<std::uint32_t>(key), row});
        return matches_.size() <= most;
    });
    if (!few) {
        std::fill(marked_.begin(), marked_.end(), 0);
        return false;
    }
    before_.resize(marked_.size());
    std::uint32_t marked = 0;
    for (std::size_t word = 0; word < marked_.size(); ++word) {
        before_[word] = marked;
        marked += static_cast<std::uint32_t>(std::popcount(marked_[word]));
    }
    const auto earlier = [this](std::uint32_t row) {
        const std::uint64_t bits = marked_[row / kBits] & ((std::uint64_t{1} << (row % kBits)) - 1);
        return before_[row / kBits] + static_cast<std::uint32_t>(std::popcount(bits));
    };
    ends_.assign(marked + std::size_t{1}, 0);
    for (Match& match : matches_) {
        match.row = earlier(match.row);
        ++ends_[match.row + 1];
    }
    for (std::size_t i = 1; i < ends_.size(); ++i) ends_[i] += ends_[i - 1];
    found.rows.resize(matches_.size());
    found.values.resize(matches_.size());
    for (const Match& match : matches_) {
        const std::uint32_t at = ends_[match.row]++;
        found.rows[at] = match.row;
        found.values[at] = values[match.key];
    }
    take_marked(rows);
    return true;
}

std::size_t IndexedSeed::join_bytes() const {
    return matches_.capacity() * sizeof(Match) + (before_.capacity() + ends_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace penstock::exec
