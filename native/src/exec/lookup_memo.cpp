#include "exec/lookup_memo.hpp"

#include <algorithm>
#include <utility>

#include "exec/dataset.hpp"

namespace penstock::exec {

bool LookupMemo::same_seed(const Table& seed) {
    if (seed.rows != 1) {  // a group has many look-ups, which differ per member
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

bool LookupMemo::begin() {
    labels_ = 0;
    if (pause_ != 0) {
        --pause_;
        return false;
    }
    next_ = 0;
    recording_ = true;
    return true;
}

template <class Rows, class Found>
void LookupMemo::add(Kind kind, std::uint32_t source, std::uint64_t version, Label label, Dir dir,
                     std::span<const TermId> keys, const Rows& rows, const Found& found) {
    if (!recording_) return;
    const bool known = is_next(kind, source, label, dir, keys);
    if (!known) truncate();
    if (next_ == kSteps || keys_.size() + (known ? 0 : keys.size()) + found.size() > kIds || source > 0xFFFF) {
        recording_ = false;
        return;
    }
    if (!known) {
        steps_[count_++] = {version,
                            label,
                            static_cast<std::uint16_t>(source),
                            static_cast<std::uint16_t>(keys_.size()),
                            static_cast<std::uint16_t>(keys.size()),
                            kind,
                            dir};
        keys_.insert(keys_.end(), keys.begin(), keys.end());
    }
    steps_[next_].version = version;
    found_[next_].rows.assign(rows.begin(), rows.end());
    found_[next_].values.assign(found.begin(), found.end());
    ++next_;
}

/// Returns whether the next step of the previous run was the same look-up.
bool LookupMemo::is_next(Kind kind, std::uint32_t source, Label label, Dir dir, std::span<const TermId> keys) const {
    if (next_ >= count_) return false;
    const Step& step = steps_[next_];
    return step.kind == kind && step.source == source && step.label == label && step.dir == dir &&
           std::ranges::equal(this->keys(step), keys);
}

/// Drops the steps of the previous run from the next one on.
void LookupMemo::truncate() {
    if (next_ == count_) return;
    keys_.resize(steps_[next_].at);
    count_ = next_;
}

void LookupMemo::expanded(const EdgeSet& edges, Dir dir, std::span<const TermId> keys, const Matches& found) {
    add(Kind::Expand, edges.source_number, edges.source->version(), edges.label, dir, keys, found.rows, found.values);
}

void LookupMemo::tested(const EdgeSet& edges, std::span<const TermId> subjects, std::span<const TermId> objects,
                        std::span<const std::uint8_t> found) {
    add(Kind::Contains, edges.source_number, 0, edges.label, Dir::Out, subjects, found, objects);
}

void LookupMemo::probed(std::uint32_t source, Dir dir, std::span<const TermId> keys,
                        std::span<const std::uint32_t> rows, std::span<const Label> labels) {
    add(Kind::Labels, source, 0, 0, dir, keys, rows, labels);
}

void LookupMemo::end(const Answer& answer, std::uint64_t labels) {
    if (!recording_ || answer->rows * answer->columns.size() > kCells) {
        pause_ = 1u << kLongestPauseBits;
        for (Matches& found : found_) found = Matches();
        matches_ = Matches();
    } else {
        truncate();
        answer_ = answer;
        labels_ = labels;
    }
    recording_ = false;
}

bool LookupMemo::still_valid(std::span<const Source* const> sources, std::uint64_t labels) {
    reuses_ = labels_ != 0 && labels_ == labels;
    if (!reuses_) return false;
    labels_ = 0;  // until all checks pass: an exception would leave steps that do not belong to the answer
    for (same_ = 0; same_ < count_; ++same_) {
        const Step& step = steps_[same_];
        if (step.source >= sources.size() || !recheck(same_, *sources[step.source])) break;
    }
    const bool same = same_ == count_;
    misses_ = same ? 0 : std::min(misses_ + 1, kHabit + kLongestPauseBits);
    pause_ = misses_ <= kHabit ? 0 : 1u << (misses_ - kHabit);
    if (same) labels_ = labels;
    return same;
}

bool LookupMemo::recheck(std::size_t number, const Source& source) {
    const Step& step = steps_[number];
    const Matches& found = found_[number];
    switch (step.kind) {
        case Kind::Expand:
            return update(number, source);
        case Kind::Labels:
            matches_.clear();
            found_labels_.clear();
            source.labels_of(keys(step), step.dir, matches_.rows, found_labels_);
            return std::ranges::equal(matches_.rows, found.rows) && std::ranges::equal(found_labels_, found.values);
        case Kind::Contains:
            flags_.assign(found.values.size(), 0);
            source.contains(keys(step), step.label, found.values, flags_);
            return std::ranges::equal(flags_, found.rows);
    }
    return false;
}

/// Records an expansion's current result. Returns whether it is unchanged.
bool LookupMemo::update(std::size_t number, const Source& source) {
    Step& step = steps_[number];
    changed_.clear();
    bool same = true;
    if (step.version != 0 && source.changed_since(step.version, keys(step), step.label, step.dir, changed_) &&
        changed_.size() <= step.keys / 4u) {
        for (const std::uint32_t key : changed_) {
            matches_.clear();
            source.expand(keys(step).subspan(key, 1), step.label, step.dir, matches_);
            same &= patch(found_[number], key);
        }
    } else {
        same = repeat_lookup(number, source);
    }
    step.version = source.version();
    return same;
}

bool LookupMemo::repeat_lookup(std::size_t number, const Source& source) {
    const Step& step = steps_[number];
    Matches& found = found_[number];
    matches_.clear();
    source.expand(keys(step), step.label, step.dir, matches_);
    if (matches_.rows == found.rows && matches_.values == found.values) return true;
    std::swap(matches_, found);
    return false;
}

/// Replaces one key's result by its current one, matches_. Returns whether it is unchanged.
bool LookupMemo::patch(Matches& found, std::uint32_t key) {
    const auto [first, last] = std::equal_range(found.rows.begin(), found.rows.end(), key);
    const auto at = first - found.rows.begin();
    const auto old_count = last - first, new_count = std::ssize(matches_.values);
    const auto values = found.values.begin() + at;
    if (old_count == new_count && std::equal(matches_.values.begin(), matches_.values.end(), values)) return true;
    const auto common = std::min(old_count, new_count);
    std::copy_n(matches_.values.begin(), common, values);
    if (old_count > new_count) {
        found.rows.erase(first + common, last);
        found.values.erase(values + common, values + old_count);
    } else {
        found.rows.insert(last, static_cast<std::size_t>(new_count - old_count), key);
        found.values.insert(values + old_count, matches_.values.begin() + common, matches_.values.end());
    }
    return false;
}

const Matches* LookupMemo::cached_neighbours(const EdgeSet& edges, Dir dir, std::span<const TermId> keys) {
    if (!recording_ || !reuses_ || !is_next(Kind::Expand, edges.source_number, edges.label, dir, keys)) return nullptr;
    if (next_ > same_) update(next_, *edges.source);
    const Matches& found = found_[next_];
    if (keys_.size() + found.values.size() > kIds) recording_ = false;
    ++next_;
    return &found;
}

}  // namespace penstock::exec
