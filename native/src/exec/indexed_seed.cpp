#include "exec/indexed_seed.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "errors.hpp"
#include "mix.hpp"

namespace penstock::exec {

namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFF;
constexpr std::uint64_t kRowsPerEdge = 2;  // a look-up of an edge's vertex costs about as much as this number of rows
constexpr std::size_t kBlock = 64;         // values whose memory is fetched at the same time
constexpr std::size_t kBits = 64;

}  // namespace

IndexedSeed::IndexedSeed(Table table) : table_(std::move(table)), indexes_(table_.columns.size()) {
    if (table_.rows >= kEnd) throw DataError("a seed has too many rows");
}

std::size_t IndexedSeed::bytes() const {
    std::size_t bytes = marked_.capacity() * sizeof(marked_[0]);
    for (const Column& column : table_.columns) bytes += column.capacity() * sizeof(TermId);
    for (const Index& index : indexes_)
        bytes += (index.heads.capacity() + index.next.capacity()) * sizeof(std::uint32_t);
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
    if (!made.heads.empty()) return made;
    const Column& values = table_.columns[column];
    std::vector<std::uint32_t> heads(std::bit_ceil(std::max<std::size_t>(values.size(), 2)), kEnd);
    made.next.resize(values.size());
    for (std::size_t row = 0; row < values.size(); ++row) {
        std::uint32_t& head = heads[mix(values[row]) & (heads.size() - 1)];
        made.next[row] = std::exchange(head, static_cast<std::uint32_t>(row));
    }
    made.heads = std::move(heads);
    return made;
}

void IndexedSeed::rows_with(std::size_t column, std::span<const TermId> values, std::vector<std::uint32_t>& rows) {
    const auto& [heads, next] = index(column);
    const Column& own = table_.columns[column];
    marked_.resize((own.size() + kBits - 1) / kBits);
    std::array<std::uint32_t, kBlock> found{};
    for (std::size_t first = 0; first < values.size(); first += kBlock) {
        const auto block = values.subspan(first, std::min(kBlock, values.size() - first));
        for (std::size_t i = 0; i < block.size(); ++i) {
            found[i] = static_cast<std::uint32_t>(mix(block[i]) & (heads.size() - 1));
            __builtin_prefetch(&heads[found[i]]);
        }
        for (std::size_t i = 0; i < block.size(); ++i) {
            found[i] = heads[found[i]];
            if (found[i] == kEnd) continue;
            __builtin_prefetch(&own[found[i]]);
            __builtin_prefetch(&next[found[i]]);
        }
        for (std::size_t i = 0; i < block.size(); ++i)
            for (std::uint32_t row = found[i]; row != kEnd; row = next[row])
                if (own[row] == block[i]) marked_[row / kBits] |= std::uint64_t{1} << (row % kBits);
    }
    rows.clear();
    for (std::size_t word = 0; word < marked_.size(); ++word) {
        for (std::uint64_t bits = std::exchange(marked_[word], 0); bits != 0; bits &= bits - 1)
            rows.push_back(static_cast<std::uint32_t>(word * kBits + static_cast<std::size_t>(std::countr_zero(bits))));
    }
}

}  // namespace penstock::exec
