#include "exec/remembered.hpp"

#include <algorithm>
#include <utility>

#include "exec/dataset.hpp"

namespace penstock::exec {

bool Remembered::same_seed(const Table& seed) {
    if (seed.rows != 1) {  // a group's look-ups are not few, and the next member's are others
        labels_ = 0;
        seed_.clear();
        return false;
    }
    if (seed_.size() == seed.columns.size() &&
        std::equal(seed_.begin(), seed_.end(), seed.columns.begin(),
                   [](const Column& a, const Column& b) { return a[0] == b[0]; }))
        return true;
    labels_ = 0;
    seed_ = seed.columns;
    return false;
}

bool Remembered::begin() {
    labels_ = 0;
    if (pause_ != 0) {
        --pause_;
        return false;
    }
    turn_ ^= 1;
    notes().count = 0;
    notes().ids.clear();
    notes().rows.clear();
    noting_ = true;
    return true;
}

template <class Rows, class Found>
void Remembered::add(Kind kind, std::uint32_t source, std::uint64_t version, Label label, Dir dir,
                     std::span<const TermId> keys, const Rows& rows, const Found& found) {
    if (!noting_) return;
    Notes& to = notes();
    if (to.count == kSteps || keys.size() + found.size() > kIds - to.ids.size() || source > 0xFFFF) {
        noting_ = false;
        return;
    }
    to.steps[to.count++] = {version,
                            label,
                            static_cast<std::uint16_t>(source),
                            static_cast<std::uint16_t>(to.ids.size()),
                            static_cast<std::uint16_t>(keys.size()),
                            static_cast<std::uint16_t>(found.size()),
                            kind,
                            dir};
    to.ids.insert(to.ids.end(), keys.begin(), keys.end());
    to.rows.resize(to.ids.size());
    to.ids.insert(to.ids.end(), found.begin(), found.end());
    to.rows.insert(to.rows.end(), rows.begin(), rows.end());
}

void Remembered::expanded(const EdgeSet& edges, Dir dir, std::span<const TermId> keys, const Matches& found) {
    add(Kind::Expand, edges.source_number, edges.source->version(), edges.label, dir, keys, found.rows, found.values);
}

void Remembered::tested(const EdgeSet& edges, std::span<const TermId> subjects, std::span<const TermId> objects,
                        std::span<const std::uint8_t> found) {
    add(Kind::Contains, edges.source_number, 0, edges.label, Dir::Out, subjects, found, objects);
}

void Remembered::probed(std::uint32_t source, Dir dir, std::span<const TermId> keys,
                        std::span<const std::uint32_t> rows, std::span<const Label> labels) {
    add(Kind::Labels, source, 0, 0, dir, keys, rows, labels);
}

void Remembered::end(const Answer& answer, std::uint64_t labels) {
    if (!noting_ || answer->rows * answer->columns.size() > kCells) {
        pause_ = 1u << kLongestPauseBits;
    } else {
        answer_ = answer;
        labels_ = labels;
    }
    noting_ = false;
}

bool Remembered::holds(std::span<const Source* const> sources, std::uint64_t labels) {
    recalls_ = labels_ != 0 && labels_ == labels;
    if (!recalls_) return false;
    Notes& noted = notes();
    for (same_ = 0; same_ < noted.count; ++same_) {
        Step& step = noted.steps[same_];
        if (step.source >= sources.size() || !again(step, *sources[step.source])) break;
        step.version = sources[step.source]->version();
    }
    const bool same = same_ == noted.count;
    misses_ = same ? 0 : std::min(misses_ + 1, kHabit + kLongestPauseBits);
    pause_ = misses_ <= kHabit ? 0 : 1u << (misses_ - kHabit);
    return same;
}

bool Remembered::again(const Step& step, const Source& source) {
    const auto keys = notes().keys(step), found = notes().found(step);
    const auto rows = notes().rows_found(step);
    switch (step.kind) {
        case Kind::Expand:
            return expands_again(step, source);
        case Kind::Labels:
            matches_.clear();
            found_labels_.clear();
            source.labels_of(keys, step.dir, matches_.rows, found_labels_);
            return std::ranges::equal(matches_.rows, rows) && std::ranges::equal(found_labels_, found);
        case Kind::Contains:
            flags_.assign(found.size(), 0);
            source.contains(keys, step.label, found, flags_);
            return std::ranges::equal(flags_, rows);
    }
    return false;
}

/// Whether the source knows which keys may give something else now, and they are few: these are changed_.
bool Remembered::few_changed(const Step& step, const Source& source, std::span<const TermId> keys) {
    changed_.clear();
    few_ = step.version != 0 && source.changed_since(step.version, keys, step.label, step.dir, changed_) &&
           changed_.size() <= keys.size() / 4;
    return few_;
}

bool Remembered::expands_again(const Step& step, const Source& source) {
    const auto keys = notes().keys(step), found = notes().found(step);
    const auto rows = notes().rows_found(step);
    matches_.clear();
    if (!few_changed(step, source, keys)) {
        source.expand(keys, step.label, step.dir, matches_);
        return std::ranges::equal(matches_.rows, rows) && std::ranges::equal(matches_.values, found);
    }
    for (const std::uint32_t key : changed_) {
        matches_.clear();
        source.expand(keys.subspan(key, 1), step.label, step.dir, matches_);
        const auto [first, last] = std::equal_range(rows.begin(), rows.end(), key);
        if (!std::equal(matches_.values.begin(), matches_.values.end(), found.begin() + (first - rows.begin()),
                        found.begin() + (last - rows.begin())))
            return false;
    }
    return true;
}

bool Remembered::recall(const EdgeSet& edges, Dir dir, std::span<const TermId> keys, Matches& found) {
    const std::size_t number = notes().count;
    if (!noting_ || !recalls_ || number >= last_notes().count) return false;
    const Step& step = last_notes().steps[number];
    if (step.kind != Kind::Expand || step.source != edges.source_number || step.label != edges.label ||
        step.dir != dir || !std::ranges::equal(last_notes().keys(step), keys))
        return false;
    std::span<const std::uint32_t> changed;
    if (number >= same_) {
        if (number == same_ ? !few_ : !few_changed(step, *edges.source, keys)) return false;
        changed = changed_;
    }
    const auto values = last_notes().found(step);
    const auto rows = last_notes().rows_found(step);
    auto from = rows.begin();
    const auto copy = [&](auto until) {
        found.rows.insert(found.rows.end(), from, until);
        found.values.insert(found.values.end(), values.begin() + (from - rows.begin()),
                            values.begin() + (until - rows.begin()));
    };
    for (const std::uint32_t key : changed) {
        const auto [first, last] = std::equal_range(from, rows.end(), key);
        copy(first);
        const auto before = static_cast<std::ptrdiff_t>(found.rows.size());
        edges.source->expand(keys.subspan(key, 1), edges.label, dir, found);
        std::fill(found.rows.begin() + before, found.rows.end(), key);
        from = last;
    }
    copy(rows.end());
    return true;
}

}  // namespace penstock::exec
