#include "store/list_rewriting.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "store/lookup.hpp"
#include "store/visibility.hpp"

namespace penstock {

using layout::Removal;

namespace {

using Positions = std::vector<PositionRange>;

/// Visits (value, position) for the values at some positions.
template <class Visit>
void for_each_value(const Region& region, TermId head, const Positions& ranges, Visit visit) {
    for (const PositionRange& range : ranges) {
        std::uint32_t position = range.begin;
        lookup::for_each_piece(region, head, range.begin, range.end, [&](const TermId* values, std::size_t n) {
            for (std::size_t i = 0; i < n; ++i) visit(values[i], position++);
        });
    }
}

/// The positions of the prefix that later words name, ascending.
std::vector<std::uint32_t> named_by(std::span<const TermId> words, std::uint32_t prefix) {
    std::vector<std::uint32_t> named;
    for (const TermId word : words)
        if (Removal::is(word) && Removal::position(word) < prefix) named.push_back(Removal::position(word));
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    return named;
}

}  // namespace

RewrittenList rewrite_prefix(const Region& region, TermId head, std::uint32_t length, std::uint32_t prefix,
                             std::span<const TermId> appended) {
    std::vector<TermId> later;
    lookup::for_each_piece(region, head, prefix, length,
                           [&](const TermId* words, std::size_t n) { later.insert(later.end(), words, words + n); });
    later.insert(later.end(), appended.begin(), appended.end());
    const std::vector<std::uint32_t> named = named_by(later, prefix);

    Positions shown{{0, prefix}};
    apply_removals(region, head, prefix, shown);
    // A removed value that a later word restores stays, with a word that removes it.
    std::vector<std::uint32_t> hidden;
    for (const std::uint32_t position : named)
        if (!in_ranges(shown, position)) hidden.push_back(position);

    std::vector<std::pair<TermId, std::uint32_t>> remaining;  // (value, old position)
    const auto keep = [&](TermId value, std::uint32_t position) { remaining.emplace_back(value, position); };
    for_each_value(region, head, shown, keep);
    for (const std::uint32_t position : hidden) for_each_value(region, head, {{position, position + 1}}, keep);
    const auto rest = std::is_sorted_until(remaining.begin(), remaining.end());
    std::sort(rest, remaining.end());
    std::inplace_merge(remaining.begin(), rest, remaining.end());

    RewrittenList made;
    made.words.reserve(remaining.size() + hidden.size() + later.size());
    std::unordered_map<std::uint32_t, std::uint32_t> moved;  // new positions of the named ones
    for (const auto& [value, position] : remaining) {
        if (std::binary_search(named.begin(), named.end(), position))
            moved.emplace(position, static_cast<std::uint32_t>(made.words.size()));
        made.words.push_back(value);
    }
    for (const std::uint32_t position : hidden) made.words.push_back(Removal::make(moved.at(position), false));
    std::sort(made.words.end() - static_cast<std::ptrdiff_t>(hidden.size()), made.words.end());
    made.ascending = static_cast<std::uint32_t>(made.words.size());
    made.prefix = prefix;
    made.shift = prefix - made.ascending;
    for (const TermId word : later) {
        if (!Removal::is(word)) {
            made.words.push_back(word);
            continue;
        }
        const std::uint32_t position = Removal::position(word);
        made.words.push_back(
            Removal::make(position < prefix ? moved.at(position) : position - made.shift, Removal::restores(word)));
    }
    for (const TermId word : made.words) {
        if (!Removal::is(word)) continue;
        made.has_words = true;
        made.removals += Removal::restores(word) ? 0 : 1;
    }
    return made;
}

}  // namespace penstock
