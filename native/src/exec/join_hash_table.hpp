// Hash table of compatible solution mappings (SPARQL 1.1 §18.3), for join, leftjoin and minus.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "exec/charge.hpp"
#include "exec/collected.hpp"
#include "exec/kernels.hpp"
#include "exec/operator.hpp"

namespace penstock::exec {

/// A chained hash index over some columns of a table's rows.
class RowIndex {
public:
    void build(const Table& table, std::span<const std::uint32_t> rows, std::vector<int> columns, Budget& budget,
               Charge& charge, std::size_t& charged);
    const std::vector<int>& columns() const { return columns_; }
    static constexpr std::uint32_t kEnd = 0xFFFFFFFF;
    /// First row of the hash's chain.
    std::uint32_t head(std::uint64_t hash) const { return heads_[hash & (heads_.size() - 1)]; }
    std::uint32_t next(std::uint32_t row) const { return next_[row]; }
    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&heads_[hash & (heads_.size() - 1)]); }

private:
    std::vector<int> columns_;
    std::vector<std::uint32_t> heads_, next_;
};

/// The right side of a join, indexed by the slots shared with the left side.
///
/// Two mappings are compatible if all shared variables that both mappings bind have equal values. Rows are classified
/// by the set of their shared cells that are bound. For a left row of class m and right rows of class b, the key is m &
/// b. In the common case each side has one class with all cells bound, and this is an ordinary hash join.
class JoinHashTable {
public:
    struct Shared {
        int left, right;  // columns
        bool nullable;    // on either side
        bool exact;  // compared as a plain value, even if unbound; not a shared variable of SPARQL (`ignore` of minus)
    };
    void configure(std::vector<Shared> shared);

    void begin(Run& run, const Schema& right) {
        rows_.begin(run, right);
        clear();
    }
    Collected& rows() { return rows_; }
    const Table& table() const { return rows_.table(); }

    /// Calls flush(left rows, right rows) for the compatible pairs, with at most kMorsel pairs at a time, until flush
    /// returns false.
    template <class Flush>
    bool join(Run& run, const Table& left, Flush&& flush);
    /// Sets found[i] = 1 if left row i has a compatible right row that shares a bound variable with it (Minus).
    void mark(Run& run, const Table& left, std::vector<std::uint8_t>& found);

    void release(Run& run);

private:
    struct Class {
        std::uint64_t bound;  // bit k: the k-th nullable shared column is bound
        std::vector<std::uint32_t> rows;
        std::map<std::uint64_t, RowIndex> by_key;  // index by the bits that both sides have bound
    };
    void clear();
    void classify(Run& run);
    std::uint64_t full() const { return nullable_.empty() ? 0 : ~std::uint64_t{0} >> (64 - nullable_.size()); }
    void classify_left(const Table& left);
    RowIndex& index(Run& run, Class& rows, std::uint64_t key);
    void hash_left(const Table& left, const RowIndex& index, std::uint64_t key, std::span<const std::uint32_t> rows);
    bool equal(const Table& left, std::uint32_t l, const RowIndex& index, std::uint32_t r) const;
    /// Calls visit(left rows of one class, class) for each pair of classes.
    template <class Visit>
    bool each_class(Run& run, const Table& left, Visit&& visit);

    std::vector<Shared> shared_;
    std::vector<std::size_t> certain_, nullable_;  // indices into shared_
    bool shares_certain_ = false;                  // whether a certain column is a shared variable of SPARQL
    Collected rows_;
    std::vector<Class> classes_;
    bool classified_ = false;
    std::vector<std::pair<std::uint64_t, std::vector<std::uint32_t>>> left_classes_;
    std::vector<std::uint64_t> hashes_;
    std::vector<int> left_columns_;
    std::vector<std::uint32_t> pair_left_, pair_right_;
    Charge charge_;
    std::size_t charged_ = 0;
};

template <class Visit>
bool JoinHashTable::each_class(Run& run, const Table& left, Visit&& visit) {
    if (!classified_) classify(run);
    if (classes_.empty() || left.rows == 0) return true;
    classify_left(left);
    for (auto& [bound, rows] : left_classes_) {
        if (rows.empty()) continue;
        for (Class& right : classes_)
            if (!visit(std::span<const std::uint32_t>(rows), right, bound & right.bound)) return false;
    }
    return true;
}

template <class Flush>
bool JoinHashTable::join(Run& run, const Table& left, Flush&& flush) {
    pair_left_.clear();
    pair_right_.clear();
    auto add = [&](std::uint32_t l, std::uint32_t r) {
        pair_left_.push_back(l);
        pair_right_.push_back(r);
        if (pair_left_.size() < kMorsel) return true;
        run.work(kMorsel);
        bool more = flush(pair_left_, pair_right_);
        pair_left_.clear();
        pair_right_.clear();
        return more;
    };
    bool more = each_class(run, left, [&](std::span<const std::uint32_t> rows, Class& right, std::uint64_t key) {
        if (certain_.empty() && key == 0) {
            for (std::uint32_t l : rows)
                for (std::uint32_t r : right.rows)
                    if (!add(l, r)) return false;
            return true;
        }
        const RowIndex& found = index(run, right, key);
        hash_left(left, found, key, rows);
        constexpr std::size_t kAhead = 8;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i + kAhead < rows.size()) found.prefetch(hashes_[i + kAhead]);
            for (std::uint32_t r = found.head(hashes_[i]); r != RowIndex::kEnd; r = found.next(r))
                if (equal(left, rows[i], found, r) && !add(rows[i], r)) return false;
        }
        return true;
    });
    return more && (pair_left_.empty() || flush(pair_left_, pair_right_));
}

}  // namespace penstock::exec
