// One call of a remote view: what it has copied, the walk that it is on, and its rounds of reads.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "errors.hpp"
#include "remote/copies.hpp"
#include "remote/known_lists.hpp"
#include "remote/shard_memory.hpp"

namespace penstock::remote {

class Operation {
public:
    static constexpr int kMaxRounds = 1 << 12;  // a chain of commits that touched one list takes two each

    explicit Operation(const Reader& reader) : copies(reader) {}

    /// Does step(i) for each i, again and again until none of them misses anything; between rounds all that was missing
    /// is read. step() stores what it found, so that the last time counts.
    template <class Step>
    void in_rounds(std::size_t count, Step step) {
        std::vector<std::uint32_t> left(count);
        std::iota(left.begin(), left.end(), 0);
        for (int round = 0; !left.empty(); ++round) {
            if (round == kMaxRounds) throw StorageError("a look-up on other nodes came to no end");
            if (round > 0) copies.fetch();
            std::size_t missing = 0;
            for (const std::uint32_t i : left) {
                walk = {};
                step(i);
                if (walk.missing) left[missing++] = i;
            }
            left.resize(missing);
        }
    }

    Copies copies;
    Walk walk;
    KnownLists::Hold hold;  // of what is used of them
};

}  // namespace penstock::remote
