#include "exec/lookup.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace penstock::exec {

namespace {

/// If a batch may have more matches than this, equal keys are looked up once; the batch then returns at most the
/// label's edges.
constexpr std::uint64_t kFoldAbove = std::uint64_t{1} << 20;
constexpr std::size_t kChargeAbove = std::size_t{64} << 10;  // smaller scratch is not charged

std::size_t bytes_of(const Matches& m) {
    return m.rows.capacity() * sizeof(m.rows[0]) + m.values.capacity() * sizeof(m.values[0]);
}

constexpr bool is_literal(TermId id) { return tag_of(id) >= Tag::Literal && tag_of(id) <= Tag::String; }
constexpr Dir opposite(Dir dir) { return dir == Dir::Out ? Dir::In : Dir::Out; }

/// Removes duplicates among values[from..], in any order. The values before `second` are distinct.
void drop_duplicates(Matches& matches, std::size_t from, std::size_t second) {
    constexpr std::size_t kComparisons = 16;  // a value is sorted in the time of so many comparisons
    const std::size_t more = matches.values.size() - second;
    if (more * (second - from) <= kComparisons * (more + second - from)) {
        std::size_t to = second;
        const auto begin = matches.values.begin() + static_cast<std::ptrdiff_t>(from);
        for (std::size_t i = second; i < matches.values.size(); ++i) {
            const auto end = matches.values.begin() + static_cast<std::ptrdiff_t>(to);
            if (std::find(begin, end, matches.values[i]) == end) matches.values[to++] = matches.values[i];
        }
        matches.values.resize(to);
        matches.rows.resize(to);
        return;
    }
    auto first = matches.values.begin() + static_cast<std::ptrdiff_t>(from);
    std::sort(first, matches.values.end());
    matches.values.erase(std::unique(first, matches.values.end()), matches.values.end());
    matches.rows.resize(matches.values.size());
}

/// Removes the edges from position `from` on whose subject is a literal.
void drop_literal_subjects(Column& subjects, Column& objects, std::size_t from) {
    std::size_t to = from;
    for (std::size_t i = from; i < subjects.size(); ++i) {
        if (is_literal(subjects[i])) continue;
        subjects[to] = subjects[i];
        objects[to++] = objects[i];
    }
    subjects.resize(to);
    objects.resize(to);
}

/// Returns the cached result of the last run if still valid; otherwise appends the result to `found` and returns it.
const Matches& look_up(Run& run, const EdgeSet& edges, std::span<const TermId> keys, Dir dir, Matches& found) {
    LookupMemo* const lookup_memo = run.lookup_memo;
    if (lookup_memo != nullptr)
        if (const Matches* cached = lookup_memo->cached_neighbours(edges, dir, keys)) return *cached;
    edges.source->expand(keys, edges.label, dir, found);
    if (lookup_memo != nullptr) lookup_memo->expanded(edges, dir, keys, found);
    return found;
}

}  // namespace

const Matches& Lookup::expand(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys, Dir dir,
                              Matches& buffer) {
    buffer.clear();
    if (keys.size() > 1 && fold_keys(run, group, keys)) {
        folded_.clear();
        unfold(expand_distinct(run, group, distinct_keys_, dir, folded_), buffer);
        charge(run, bytes_of(buffer) + bytes_of(folded_));
        return buffer;
    }
    const Matches& found = expand_distinct(run, group, keys, dir, buffer);
    charge(run, bytes_of(found));
    return found;
}

void Lookup::charge(Run& run, std::size_t bytes) {
    if (bytes <= kChargeAbove) return;
    holds_ = true;
    charge_.set(run.budget(), bytes);
}

/// Fills distinct_keys_ and key_of_row_; false if folding would save nothing. Equal neighbours are always folded (an
/// expansion repeats keys); others if the batch could otherwise return more than kFoldAbove matches.
bool Lookup::fold_keys(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys) {
    std::size_t runs = 1, rises = 1;
    for (std::size_t i = 1; i < keys.size(); ++i) {
        runs += keys[i] != keys[i - 1];
        rises += keys[i] > keys[i - 1];
    }
    if (rises == keys.size()) return false;  // as in a list loaded in one commit
    std::uint64_t edges = 0;
    if (runs > 1)
        for (const EdgeSet& set : group) edges += set.source->edge_count(set.label);
    bool all = runs > 1 && edges > kFoldAbove / runs;
    if (runs == keys.size() && !all) return false;
    key_of_row_.resize(keys.size());
    if (all) {
        holds_ = true;
        seen_.reset(1);
        std::array<const TermId*, 1> columns{keys.data()};
        seen_.assign(columns, keys.size(), key_of_row_.data(), run.budget());
        distinct_keys_.assign(seen_.column(0).begin(), seen_.column(0).end());
        return distinct_keys_.size() < keys.size();
    }
    distinct_keys_.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i == 0 || keys[i] != keys[i - 1]) distinct_keys_.push_back(keys[i]);
        key_of_row_[i] = static_cast<std::uint32_t>(distinct_keys_.size() - 1);
    }
    return true;
}

void Lookup::unfold(const Matches& folded, Matches& found) {
    starts_.assign(distinct_keys_.size() + 1, 0);
    for (std::uint32_t row : folded.rows) ++starts_[row + 1];
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    for (std::size_t i = 0; i < key_of_row_.size(); ++i) {
        std::size_t from = starts_[key_of_row_[i]], to = starts_[key_of_row_[i] + 1];
        found.rows.insert(found.rows.end(), to - from, static_cast<std::uint32_t>(i));
        found.values.insert(found.values.end(), folded.values.begin() + static_cast<std::ptrdiff_t>(from),
                            folded.values.begin() + static_cast<std::ptrdiff_t>(to));
    }
}

const Matches& Lookup::expand_distinct(Run& run, std::span<const EdgeSet> group, std::span<const TermId> keys, Dir dir,
                                       Matches& buffer) {
    run.work(keys.size());
    const auto expand_set = [&](const EdgeSet& set, Matches& found) -> const Matches& {
        return set.inverse ? expand_inverse(run, set, keys, dir, found) : look_up(run, set, keys, dir, found);
    };
    if (group.size() == 1) return expand_set(group[0], buffer);
    if (parts_.size() < group.size()) parts_.resize(group.size());
    std::size_t filled = 0;
    for (const EdgeSet& set : group) {
        Matches& part = parts_[filled];
        part.clear();
        if (const Matches& found = expand_set(set, part); &found != &part) part = found;
        filled += !part.rows.empty();
    }
    if (filled == 1) std::swap(buffer, parts_[0]);
    if (filled > 1) merge(filled, buffer);
    return buffer;
}

/// As look_up() in the other direction, without matches whose subject is a literal.
const Matches& Lookup::expand_inverse(Run& run, const EdgeSet& edges, std::span<const TermId> keys, Dir dir,
                                      Matches& buffer) {
    const Matches& found = look_up(run, edges, keys, opposite(dir), buffer);
    const auto has_literal = [&](std::size_t i) {
        return is_literal(dir == Dir::Out ? keys[found.rows[i]] : found.values[i]);
    };
    std::size_t to = 0;
    while (to < found.rows.size() && !has_literal(to)) ++to;
    if (to == found.rows.size()) return found;
    if (&found != &buffer) {
        buffer.rows.assign(found.rows.begin(), found.rows.end());
        buffer.values.assign(found.values.begin(), found.values.end());
    }
    for (std::size_t i = to; i < buffer.rows.size(); ++i) {
        if (is_literal(dir == Dir::Out ? keys[buffer.rows[i]] : buffer.values[i])) continue;
        buffer.rows[to] = buffer.rows[i];
        buffer.values[to++] = buffer.values[i];
    }
    buffer.rows.resize(to);
    buffer.values.resize(to);
    return buffer;
}

/// The union of the first parts_, each ascending by row. Duplicates are always in different parts.
void Lookup::merge(std::size_t sets, Matches& found) {
    heads_.assign(sets, 0);
    for (;;) {
        std::uint32_t row = 0xFFFFFFFF;
        for (std::size_t p = 0; p < sets; ++p)
            if (heads_[p] < parts_[p].rows.size()) row = std::min(row, parts_[p].rows[heads_[p]]);
        if (row == 0xFFFFFFFF) return;
        std::size_t start = found.rows.size(), second = start, givers = 0;
        for (std::size_t p = 0; p < sets; ++p) {
            const Matches& part = parts_[p];
            std::size_t& at = heads_[p];
            if (at == part.rows.size() || part.rows[at] != row) continue;
            if (++givers == 2) second = found.rows.size();
            const std::size_t first = at;
            while (at < part.rows.size() && part.rows[at] == row) ++at;
            found.rows.insert(found.rows.end(), at - first, row);
            found.values.insert(found.values.end(), part.values.begin() + static_cast<std::ptrdiff_t>(first),
                                part.values.begin() + static_cast<std::ptrdiff_t>(at));
        }
        if (givers > 1) drop_duplicates(found, start, second);
    }
}

void Lookup::contains(Run& run, std::span<const EdgeSet> group, std::span<const TermId> subjects,
                      std::span<const TermId> objects, std::vector<std::uint8_t>& found) {
    found.assign(subjects.size(), 0);
    const bool inverse = std::any_of(group.begin(), group.end(), [](const EdgeSet& set) { return set.inverse; });
    if (inverse || (group.size() > 1 && run.lookup_memo != nullptr))
        return contains_each(run, group, subjects, objects, found);
    for (const EdgeSet& set : group) set.source->contains(subjects, set.label, objects, found);
    if (run.lookup_memo != nullptr) run.lookup_memo->tested(group[0], subjects, objects, found);
}

/// As contains(), each set by itself: a memo must know which set contains an edge.
void Lookup::contains_each(Run& run, std::span<const EdgeSet> group, std::span<const TermId> subjects,
                           std::span<const TermId> objects, std::vector<std::uint8_t>& found) {
    for (const EdgeSet& set : group) {
        const std::span<const TermId> from = set.inverse ? objects : subjects, to = set.inverse ? subjects : objects;
        in_set_.assign(from.size(), 0);
        set.source->contains(from, set.label, to, in_set_);
        if (run.lookup_memo != nullptr) run.lookup_memo->tested(set, from, to, in_set_);
        for (std::size_t i = 0; i < found.size(); ++i)
            found[i] |= in_set_[i] & static_cast<std::uint8_t>(!set.inverse || !is_literal(subjects[i]));
    }
}

void Lookup::pairs(Run& run, std::span<const EdgeSet> group, Column& subjects, Column& objects) {
    if (run.lookup_memo != nullptr) run.lookup_memo->abandon();
    subjects.clear();
    objects.clear();
    std::uint64_t edges = 0;
    for (const EdgeSet& set : group) edges += set.source->edge_count(set.label);
    charge(run, edges * 2 * sizeof(TermId));
    std::size_t givers = 0;
    for (const EdgeSet& set : group) {
        std::size_t before = subjects.size();
        if (set.inverse) {
            set.source->edges(set.label, objects, subjects);
            drop_literal_subjects(subjects, objects, before);
        } else {
            set.source->edges(set.label, subjects, objects);
        }
        givers += subjects.size() != before;
    }
    if (givers < 2) return;
    holds_ = true;
    seen_.reset(2);
    std::vector<std::uint32_t> ids(subjects.size());
    std::array<const TermId*, 2> columns{subjects.data(), objects.data()};
    seen_.assign(columns, subjects.size(), ids.data(), run.budget());
    subjects.assign(seen_.column(0).begin(), seen_.column(0).end());
    objects.assign(seen_.column(1).begin(), seen_.column(1).end());
}

void Lookup::release(Run& run) {
    if (!holds_) return;
    holds_ = false;
    seen_.release(run.budget());
    charge_.release(run.budget());
    if (bytes_of(folded_) > kChargeAbove) folded_ = Matches();
    for (Matches& part : parts_)
        if (bytes_of(part) > kChargeAbove) part = Matches();
}

LabelProbe::Found& LabelProbe::entry(const EdgeSet& edges) {
    if (used_ == found_.size()) found_.emplace_back();
    Found& made = found_[used_++];
    made.edges = edges;
    made.keys.clear();
    return made;
}
void LabelProbe::probe(Run& run, const Dataset& dataset, std::span<const TermId> keys, Dir dir, TermId predicate,
                       TermId graph) {
    constexpr std::uint32_t kUnknown = 0, kOutside = 1, kFirst = 2;
    used_ = 0;
    for (std::size_t part = 0; part < dataset.parts(); ++part) {
        rows_.clear();
        labels_.clear();
        dataset.source(run, part).labels_of(keys, dir, rows_, labels_);
        run.work(keys.size() + rows_.size());
        if (run.lookup_memo != nullptr) run.lookup_memo->probed(dataset.source_number(part), dir, keys, rows_, labels_);
        EdgeSet edges{};
        for (std::size_t i = 0; i < labels_.size(); ++i) {
            if (labels_[i] >= entry_of_label_.size()) entry_of_label_.resize(labels_[i] + 1, kUnknown);
            std::uint32_t& known = entry_of_label_[labels_[i]];
            if (known == kUnknown) {
                known = kOutside;
                if (dataset.classify(run, part, labels_[i], graph, edges) &&
                    (predicate == 0 || edges.predicate == predicate)) {
                    known = static_cast<std::uint32_t>(used_) + kFirst;
                    entry(edges);
                }
            }
            if (known >= kFirst) found_[known - kFirst].keys.push_back(rows_[i]);
        }
        for (Label label : labels_) entry_of_label_[label] = kUnknown;
    }
    order_.resize(used_);
    std::iota(order_.begin(), order_.end(), 0u);
    auto key = [this](std::uint32_t i) {
        const EdgeSet& e = found_[i].edges;
        return std::make_tuple(e.predicate, e.graph, e.source_number, e.label);
    };
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
}

std::size_t LabelProbe::group(std::size_t i, std::vector<EdgeSet>& edges, std::vector<std::uint32_t>& keys) const {
    edges.clear();
    keys.clear();
    std::size_t first = i;
    for (; i < order_.size() && found_[order_[i]].edges.same_group(found_[order_[first]].edges); ++i) {
        const Found& found = found_[order_[i]];
        bool repeated =
            !edges.empty() && edges.back().source == found.edges.source && edges.back().label == found.edges.label;
        if (!repeated) edges.push_back(found.edges);
        keys.insert(keys.end(), found.keys.begin(), found.keys.end());
    }
    if (i - first > 1 || !std::is_sorted(keys.begin(), keys.end())) {
        std::sort(keys.begin(), keys.end());
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    }
    return i;
}

}  // namespace penstock::exec
