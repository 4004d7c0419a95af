// Enumerates a label's edges with the look-ups that every view of the stored graph offers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "source.hpp"

namespace penstock {

/// Appends each edge of the label: expands its subjects in blocks of some thousand.
inline void edges_by_block(const Source& view, Label label, std::vector<TermId>& subjects,
                           std::vector<TermId>& objects) {
    constexpr std::size_t kBlock = 4096;
    std::vector<TermId> keys;
    view.vertices(label, Dir::Out, keys);
    Matches matches;
    for (std::size_t at = 0; at < keys.size(); at += kBlock) {
        const auto block = std::span(keys).subspan(at, std::min(kBlock, keys.size() - at));
        matches.clear();
        view.expand(block, label, Dir::Out, matches);
        for (const std::uint32_t row : matches.rows) subjects.push_back(block[row]);
        objects.insert(objects.end(), matches.values.begin(), matches.values.end());
    }
}

}  // namespace penstock
