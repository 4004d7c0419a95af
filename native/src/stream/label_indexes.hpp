// The labels of a window, with the counts and indexes of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stream/adjacency.hpp"

namespace penstock {

struct LabelIndex {
    Label label = 0;
    std::uint32_t number = 0;        // in LabelIndexes
    std::uint64_t edges = 0;         // distinct
    std::optional<Adjacency> by[2];  // by Dir; empty until a reader asks for that direction
    // Edges when `counted_vertices` was counted, for a direction without index.
    std::uint64_t counted_edges[2] = {};
    std::uint64_t counted_vertices[2] = {};
};

/// Assigns dense numbers to labels. A record therefore names its label in one word, and the label is found without
/// hashing.
class LabelIndexes {
public:
    LabelIndex& operator[](std::uint32_t number) { return *indexes_[number]; }
    const std::vector<std::unique_ptr<LabelIndex>>& all() const { return indexes_; }  // null: the number is free

    LabelIndex* find(Label label) {
        LabelIndex*& recent = recent_[label % kRecent];
        if (recent != nullptr && recent->label == label) return recent;
        const auto found = numbers_.find(label);
        return found == numbers_.end() ? nullptr : recent = indexes_[found->second].get();
    }

    /// Creates the index if the label is new.
    LabelIndex& of(Label label) {
        LabelIndex* const known = find(label);
        return known != nullptr ? *known : add(label);
    }

    /// From now on every new label is indexed in this direction.
    void index_all(Dir dir) { all_indexed_[static_cast<int>(dir)] = true; }
    bool indexes_all(Dir dir) const { return all_indexed_[static_cast<int>(dir)]; }

    /// Removes labels without edges when there are many, because a stream can have an unbounded number of predicates.
    void forget_empty() {
        if (numbers_.size() < check_at_) return;
        for (std::uint32_t number = 0; number < indexes_.size(); ++number) {
            if (indexes_[number] == nullptr || indexes_[number]->edges > 0) continue;
            const Label label = indexes_[number]->label;
            numbers_.erase(label);
            recent_[label % kRecent] = nullptr;
            indexes_[number].reset();
            free_.push_back(number);
        }
        check_at_ = 2 * numbers_.size() + kManyLabels;
    }

    std::size_t size() const { return numbers_.size(); }
    std::size_t bytes() const {
        std::size_t bytes = indexes_.capacity() * sizeof(indexes_[0]) +
                            numbers_.size() * (sizeof(LabelIndex) + kNumberBytes) + sizeof(recent_);
        for (const auto& index : indexes_) {
            for (int dir = 0; index && dir < 2; ++dir) bytes += index->by[dir] ? index->by[dir]->bytes() : 0;
        }
        return bytes;
    }

private:
    static constexpr std::size_t kManyLabels = 256;
    static constexpr std::size_t kRecent = 32;
    static constexpr std::size_t kNumberBytes = 32;  // of an entry in `numbers_`

    LabelIndex& add(Label label) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(indexes_.size()));
            indexes_.emplace_back();
        }
        const std::uint32_t number = free_.back();
        free_.pop_back();
        auto index = std::make_unique<LabelIndex>();
        index->label = label;
        index->number = number;
        for (int dir = 0; dir < 2; ++dir) {
            if (all_indexed_[dir]) index->by[dir].emplace();
        }
        indexes_[number] = std::move(index);
        numbers_.emplace(label, number);
        return *indexes_[number];
    }

    std::vector<std::unique_ptr<LabelIndex>> indexes_;
    std::vector<std::uint32_t> free_;
    std::unordered_map<Label, std::uint32_t> numbers_;
    LabelIndex* recent_[kRecent] = {};  // by the label's last bits: a cache that most tuples hit
    std::size_t check_at_ = kManyLabels;
    bool all_indexed_[2] = {false, false};
};

}  // namespace penstock
