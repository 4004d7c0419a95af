#include "exec/join_hash_table.hpp"

#include <numeric>

namespace penstock::exec {

void RowIndex::build(const Table& table, std::span<const std::uint32_t> rows, std::vector<int> columns, Budget& budget,
                     Charge& charge, std::size_t& charged) {
    columns_ = std::move(columns);
    std::size_t buckets = std::bit_ceil(std::max<std::size_t>(rows.size() * 2, 16));
    charged += (buckets + table.rows) * sizeof(std::uint32_t);
    charge.set(budget, charged);
    heads_.assign(buckets, kEnd);
    next_.resize(table.rows);
    std::vector<std::uint64_t> hashes(rows.size(), 0);
    for (int c : columns_) {
        const Column& column = table.columns[static_cast<std::size_t>(c)];
        for (std::size_t i = 0; i < rows.size(); ++i) hashes[i] = combine(hashes[i], column[rows[i]]);
    }
    for (std::size_t i = rows.size(); i-- > 0;) {  // backwards, so that chains run in the rows' order
        std::uint32_t& head = heads_[hashes[i] & (buckets - 1)];
        next_[rows[i]] = head;
        head = rows[i];
    }
}

void JoinHashTable::configure(std::vector<Shared> shared) {
    shared_ = std::move(shared);
    for (std::size_t i = 0; i < shared_.size(); ++i) {
        bool nullable = shared_[i].nullable && !shared_[i].exact;
        (nullable ? nullable_ : certain_).push_back(i);
        shares_certain_ = shares_certain_ || (!nullable && !shared_[i].exact);
    }
    if (nullable_.size() > 64) throw LimitError("a join shares more than 64 variables that may be unbound");
}

void JoinHashTable::clear() {
    classes_.clear();
    classified_ = false;
}

void JoinHashTable::release(Run& run) {
    clear();
    rows_.release(run.budget());
    charged_ = 0;
    charge_.release(run.budget());
}

void JoinHashTable::classify(Run& run) {
    classified_ = true;
    const Table& table = rows_.table();
    if (table.rows == 0) return;
    charged_ += table.rows * sizeof(std::uint32_t);
    charge_.set(run.budget(), charged_);
    std::map<std::uint64_t, std::size_t> class_of;
    for (std::uint32_t r = 0; r < table.rows; ++r) {
        std::uint64_t bound = 0;
        for (std::size_t k = 0; k < nullable_.size(); ++k) {
            const Column& column = table.columns[static_cast<std::size_t>(shared_[nullable_[k]].right)];
            bound |= static_cast<std::uint64_t>(column[r] != kUnbound) << k;
        }
        if (classes_.empty() || classes_.back().bound != bound) {
            auto [at, is_new] = class_of.try_emplace(bound, classes_.size());
            if (is_new) classes_.push_back({bound, {}, {}});
            classes_[at->second].rows.push_back(r);
        } else {
            classes_.back().rows.push_back(r);
        }
    }
}

void JoinHashTable::classify_left(const Table& left) {
    for (auto& [bound, rows] : left_classes_) rows.clear();
    if (nullable_.empty()) {
        if (left_classes_.empty()) left_classes_.push_back({0, {}});
        left_classes_[0].second.resize(left.rows);
        std::iota(left_classes_[0].second.begin(), left_classes_[0].second.end(), 0u);
        return;
    }
    std::size_t last = 0;
    for (std::uint32_t l = 0; l < left.rows; ++l) {
        std::uint64_t bound = 0;
        for (std::size_t k = 0; k < nullable_.size(); ++k) {
            const Column& column = left.columns[static_cast<std::size_t>(shared_[nullable_[k]].left)];
            bound |= static_cast<std::uint64_t>(column[l] != kUnbound) << k;
        }
        if (last >= left_classes_.size() || left_classes_[last].first != bound) {
            last = 0;
            while (last < left_classes_.size() && left_classes_[last].first != bound) ++last;
            if (last == left_classes_.size()) left_classes_.push_back({bound, {}});
        }
        left_classes_[last].second.push_back(l);
    }
}

RowIndex& JoinHashTable::index(Run& run, Class& rows, std::uint64_t key) {
    auto [at, is_new] = rows.by_key.try_emplace(key);
    if (is_new) {
        std::vector<int> columns;
        for (std::size_t i : certain_) columns.push_back(shared_[i].right);
        for (std::size_t k = 0; k < nullable_.size(); ++k)
            if (key >> k & 1) columns.push_back(shared_[nullable_[k]].right);
        at->second.build(rows_.table(), rows.rows, std::move(columns), run.budget(), charge_, charged_);
    }
    return at->second;
}

void JoinHashTable::hash_left(const Table& left, const RowIndex&, std::uint64_t key,
                              std::span<const std::uint32_t> rows) {
    left_columns_.clear();
    for (std::size_t i : certain_) left_columns_.push_back(shared_[i].left);
    for (std::size_t k = 0; k < nullable_.size(); ++k)
        if (key >> k & 1) left_columns_.push_back(shared_[nullable_[k]].left);
    hashes_.assign(rows.size(), 0);
    for (int c : left_columns_) {
        const Column& column = left.columns[static_cast<std::size_t>(c)];
        for (std::size_t i = 0; i < rows.size(); ++i) hashes_[i] = combine(hashes_[i], column[rows[i]]);
    }
}

bool JoinHashTable::equal(const Table& left, std::uint32_t l, const RowIndex& index, std::uint32_t r) const {
    const Table& right = rows_.table();
    for (std::size_t i = 0; i < left_columns_.size(); ++i)
        if (left.columns[static_cast<std::size_t>(left_columns_[i])][l] !=
            right.columns[static_cast<std::size_t>(index.columns()[i])][r])
            return false;
    return true;
}

void JoinHashTable::mark(Run& run, const Table& left, std::vector<std::uint8_t>& found) {
    found.assign(left.rows, 0);
    each_class(run, left, [&](std::span<const std::uint32_t> rows, Class& right, std::uint64_t key) {
        if (key == 0 && !shares_certain_) return true;  // disjoint domains
        const RowIndex& matches = index(run, right, key);
        hash_left(left, matches, key, rows);
        for (std::size_t i = 0; i < rows.size(); ++i)
            for (std::uint32_t r = matches.head(hashes_[i]); r != RowIndex::kEnd && !found[rows[i]];
                 r = matches.next(r))
                found[rows[i]] = equal(left, rows[i], matches, r);
        return true;
    });
}

}  // namespace penstock::exec
