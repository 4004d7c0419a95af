#include "exec/key_table.hpp"

#include <algorithm>
#include <bit>

#include "exec/kernels.hpp"

namespace penstock::exec {

namespace {
constexpr std::size_t kSmallBuckets = 4096;                   // larger tables are freed after a run
constexpr std::size_t kCachedBuckets = std::size_t{1} << 14;  // rows of larger tables are not in the L2 cache
}  // namespace

void KeyTable::reset(std::size_t columns) {
    columns_.resize(columns);
    for (Column& column : columns_) column.clear();
    hashes_.clear();
    if (size_ != 0) std::fill(buckets_.begin(), buckets_.end(), Bucket{});
    size_ = 0;
}

void KeyTable::release(Budget& budget) {
    if (buckets_.size() > kSmallBuckets) {
        columns_.clear();
        hashes_ = {};
        buckets_ = {};
        size_ = 0;
    }
    reset(columns_.size());
    charge_.release(budget);
}

void KeyTable::rehash(std::size_t buckets) {
    buckets_.assign(buckets, Bucket{});
    std::size_t mask = buckets - 1;
    for (std::size_t i = 0; i < size_; ++i) {
        std::size_t at = hashes_[i] & mask;
        while (buckets_[at].id != kNone) at = (at + 1) & mask;
        buckets_[at] = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(hashes_[i] >> 32)};
    }
}

/// Makes room for further rows; charges before it allocates.
void KeyTable::reserve(std::size_t rows, Budget& budget) {
    std::size_t needed = size_ + rows;
    if (needed >= kNone) throw LimitError("a table of the evaluation exceeds 2^32 rows");
    if (needed * 2 > buckets_.size()) {
        std::size_t buckets = std::bit_ceil(std::max<std::size_t>(needed * 2, 64));
        charge_.set(budget, buckets * (sizeof(Bucket) + (columns_.size() + 1) * sizeof(std::uint64_t) / 2));
        rehash(buckets);
        hashes_.reserve(buckets / 2);
        for (Column& column : columns_) column.reserve(buckets / 2);
    }
}

/// Prefetches the row of a key whose bucket is cached. Other rows of the same hash value may stand before it.
inline void KeyTable::prefetch_row(std::uint64_t hash) const {
    const Bucket& bucket = buckets_[hash & (buckets_.size() - 1)];
    if (bucket.id == kNone || bucket.tag != static_cast<std::uint32_t>(hash >> 32)) return;
    for (const Column& column : columns_) __builtin_prefetch(&column[bucket.id]);
}

std::uint32_t KeyTable::insert(std::uint64_t hash, std::span<const TermId* const> keys, std::size_t row) {
    std::size_t mask = buckets_.size() - 1;
    auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
        Bucket& bucket = buckets_[at];
        if (bucket.id == kNone) {
            bucket = {static_cast<std::uint32_t>(size_), tag};
            hashes_.push_back(hash);
            for (std::size_t c = 0; c < keys.size(); ++c) columns_[c].push_back(keys[c][row]);
            return static_cast<std::uint32_t>(size_++);
        }
        if (bucket.tag != tag) continue;
        bool same = true;
        for (std::size_t c = 0; c < keys.size() && same; ++c) same = columns_[c][bucket.id] == keys[c][row];
        if (same) return bucket.id;
    }
}

void KeyTable::assign(std::span<const TermId* const> keys, std::size_t rows, std::uint32_t* ids, Budget& budget) {
    constexpr std::size_t kBlock = 256, kAhead = 16;
    if (scratch_.size() < kBlock) scratch_.resize(kBlock);
    for (std::size_t from = 0; from < rows; from += kBlock) {
        std::size_t n = std::min(kBlock, rows - from);
        reserve(n, budget);
        std::fill_n(scratch_.begin(), n, 0);
        for (const TermId* key : keys)
            for (std::size_t i = 0; i < n; ++i) scratch_[i] = combine(scratch_[i], key[from + i]);
        std::size_t mask = buckets_.size() - 1;
        const bool large = buckets_.size() > kCachedBuckets;
        for (std::size_t i = 0; i < n; ++i) {
            if (i + kAhead < n) __builtin_prefetch(&buckets_[scratch_[i + kAhead] & mask]);
            if (large && i + kAhead / 2 < n) prefetch_row(scratch_[i + kAhead / 2]);
            ids[from + i] = insert(scratch_[i], keys, from + i);
        }
    }
}

std::uint32_t KeyTable::assign_one(std::span<const TermId> key, Budget& budget) {
    const TermId* keys[8];
    if (key.size() > std::size(keys)) throw Error("key table: too many columns for a single row");
    for (std::size_t c = 0; c < key.size(); ++c) keys[c] = &key[c];
    std::uint32_t id = 0;
    assign({keys, key.size()}, 1, &id, budget);
    return id;
}

std::uint32_t KeyTable::find_one(std::span<const TermId> key) const {
    if (buckets_.empty()) return kNone;
    std::uint64_t hash = 0;
    for (TermId id : key) hash = combine(hash, id);
    std::size_t mask = buckets_.size() - 1;
    for (std::size_t at = hash & mask; buckets_[at].id != kNone; at = (at + 1) & mask) {
        if (buckets_[at].tag != static_cast<std::uint32_t>(hash >> 32)) continue;
        bool same = true;
        for (std::size_t c = 0; c < key.size() && same; ++c) same = columns_[c][buckets_[at].id] == key[c];
        if (same) return buckets_[at].id;
    }
    return kNone;
}

}  // namespace penstock::exec
