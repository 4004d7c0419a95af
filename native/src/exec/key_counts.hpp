// How many input rows each key of GROUP BY or DISTINCT has, while rows are added and removed (ADR 78).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "large_pages.hpp"

namespace penstock::exec {

/// Counts by the numbers of a KeyTable. The cost depends only on the added and removed rows, because nothing reads all
/// keys.
class KeyCounts {
public:
    void clear() {
        counts_.clear();
        changed_.clear();
        before_.clear();
        empty_ = 0;
    }
    /// Begins an update. `records`: whether changed() will be called.
    void begin_update(bool records) {
        for (const std::uint32_t key : changed_) counts_[key].changed = 0;
        changed_.clear();
        before_.clear();
        records_ = records;
    }
    /// Begins a complete evaluation, which adds rows to no keys.
    void begin() {
        clear();
        records_ = false;
    }
    /// Adds rows (`sign` = 1) or removes them (-1). `keys`: the key of each row. `size`: of the KeyTable.
    void add(std::span<const std::uint32_t> keys, std::size_t size, int sign) {
        if (size > counts_.size()) {
            empty_ += size - counts_.size();
            counts_.resize(size);
        }
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (i + kAhead < keys.size()) __builtin_prefetch(&counts_[keys[i + kAhead]], 1);
            Count& count = counts_[keys[i]];
            if (records_ && count.changed == 0) {
                count.changed = 1;
                changed_.push_back(keys[i]);
                before_.push_back(count.rows);
            }
            empty_ -= count.rows == 0 ? 1 : 0;
            count.rows += sign;
            empty_ += count.rows == 0 ? 1 : 0;
        }
    }

    std::int64_t rows(std::uint32_t key) const { return counts_[key].rows; }
    bool is_changed(std::uint32_t key) const { return counts_[key].changed != 0; }
    /// The keys whose rows the update has added or removed, each once.
    const std::vector<std::uint32_t>& changed() const { return changed_; }
    /// Rows of changed()[i] before the update.
    std::int64_t before(std::size_t i) const { return before_[i]; }
    /// Number of keys that have no rows.
    std::size_t empty() const { return empty_; }
    /// Sets `out` to the keys that have rows.
    void occurring(std::vector<std::uint32_t>& out) const {
        out.clear();
        for (std::uint32_t key = 0; key < counts_.size(); ++key)
            if (counts_[key].rows != 0) out.push_back(key);
    }
    std::size_t bytes() const { return counts_.capacity() * sizeof(Count); }

private:
    static constexpr std::size_t kAhead = 16;  // number of rows whose counts are prefetched
    struct Count {
        std::int64_t rows : 63 = 0;
        std::uint64_t changed : 1 = 0;
    };
    static_assert(sizeof(Count) == sizeof(std::int64_t));

    std::vector<Count, LargePages<Count>> counts_;
    std::vector<std::uint32_t> changed_;
    std::vector<std::int64_t> before_;  // by changed key
    std::size_t empty_ = 0;
    bool records_ = false;
};

}  // namespace penstock::exec
