// A list without the values that no reader can see (docs/adr/0105-compaction-of-shared-stores.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/layout.hpp"
#include "store/region.hpp"

namespace penstock {

/// The words of a list after it was rewritten. Its *prefix* consists of the words of commits that all readers see, now
/// and later. Only the prefix becomes shorter; the words after it keep their order.
struct RewrittenList {
    std::vector<TermId> words;  // the first `ascending` of them ascend
    std::uint32_t ascending = 0;
    std::uint32_t prefix = 0;    // words of the prefix before the rewriting
    std::uint32_t shift = 0;     // by which positions after the prefix became smaller
    std::uint32_t removals = 0;  // removal words that remove a value
    bool has_words = false;      // whether it has removal words

    std::uint64_t values() const { return words.size() - 2 * std::uint64_t{removals}; }
};

/// `prefix`: the words of the list's prefix. `appended`: words of the running commit, with the list's old positions.
RewrittenList rewrite_prefix(const Region& region, TermId head, std::uint32_t length, std::uint32_t prefix,
                             std::span<const TermId> appended);

}  // namespace penstock
