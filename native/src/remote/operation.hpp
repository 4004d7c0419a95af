// One call of a remote view: its copies, the current traversal, and its rounds of reads.
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
    // The maximum number of rounds. A chain of commits that changed one list needs two rounds per commit.
    static constexpr int kMaxRounds = 1 << 12;

    explicit Operation(const Reader& reader) : copies(reader) {}

    /// Runs step(i) for each i in rounds, until no step misses data. Between rounds, fetches all missing data. step()
    /// overwrites its result, so that the result of the last round remains.
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
    KnownLists::Hold hold;  // of the cached lists in use
};

}  // namespace penstock::remote
