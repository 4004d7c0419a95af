// The labels of a window: what is counted and indexed of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "stream/adjacency.hpp"
#include "stream/hash_groups.hpp"

namespace penstock {

struct LabelIndex {
    Label label = 0;
    std::uint64_t edges = 0;              // distinct
    std::optional<Adjacency> by[2];       // by Dir; none while nobody has asked for it
    std::uint64_t counted_edges[2] = {};  // when `counted_vertices` was taken, of a direction that is not indexed
    std::uint64_t counted_vertices[2] = {};
};

/// Numbers labels densely, so that a record names one in a word and finds it without hashing.
class LabelIndexes {
public:
    LabelIndex& operator[](std::uint32_t number) { return *indexes_[number]; }
    const std::vector<std::unique_ptr<LabelIndex>>& all() const { return indexes_; }  // null: the number is free

    LabelIndex* find(Label label) {
        const HashedNumber* const found = known(label);
        return found == nullptr ? nullptr : indexes_[found->number].get();
    }

    std::uint32_t number(Label label) {
        const HashedNumber* const found = known(label);
        return found != nullptr ? found->number : add(label);
    }

    /// The indexes of directions that every label gets from its beginning.
    void want_all(Dir dir) { wanted_[static_cast<int>(dir)] = true; }
    bool wants_all(Dir dir) const { return wanted_[static_cast<int>(dir)]; }

    /// Forgets labels without edges once there are many: a stream may have ever-new predicates.
    void forget_empty() {
        if (numbers_.size() < check_at_) return;
        for (std::uint32_t number = 0; number < indexes_.size(); ++number) {
            if (indexes_[number] == nullptr || indexes_[number]->edges > 0) continue;
            const Label label = indexes_[number]->label;
            numbers_.erase(hash_id(label), known(label));
            indexes_[number].reset();
            free_.push_back(number);
        }
        check_at_ = 2 * numbers_.size() + kManyLabels;
    }

    std::size_t size() const { return numbers_.size(); }
    std::size_t bytes() const {
        std::size_t bytes =
            indexes_.capacity() * sizeof(indexes_[0]) + numbers_.size() * sizeof(LabelIndex) + numbers_.bytes();
        for (const auto& index : indexes_) {
            for (int dir = 0; index && dir < 2; ++dir) bytes += index->by[dir] ? index->by[dir]->bytes() : 0;
        }
        return bytes;
    }

private:
    static constexpr std::size_t kManyLabels = 256;

    const HashedNumber* known(Label label) const {
        return numbers_.find(hash_id(label),
                             [&](const HashedNumber& at) { return indexes_[at.number]->label == label; });
    }

    std::uint32_t add(Label label) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(indexes_.size()));
            indexes_.emplace_back();
        }
        const std::uint32_t number = free_.back();
        free_.pop_back();
        auto index = std::make_unique<LabelIndex>();
        index->label = label;
        for (int dir = 0; dir < 2; ++dir) {
            if (wanted_[dir]) index->by[dir].emplace();
        }
        indexes_[number] = std::move(index);
        numbers_.insert(hash_id(label), {hash_id(label), number});
        return number;
    }

    std::vector<std::unique_ptr<LabelIndex>> indexes_;
    std::vector<std::uint32_t> free_;
    HashGroups<HashedNumber> numbers_;
    std::size_t check_at_ = kManyLabels;
    bool wanted_[2] = {false, false};
};

}  // namespace penstock
