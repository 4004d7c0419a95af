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
    next_ = 0;
    noting_ = true;
    return true;
}

template <class Rows, class Found>
void Remembered::add(Kind kind, std::uint32_t source, std::uint64_t version, Label label, Dir dir,
                     std::span<const TermId> keys, const Rows& rows, const Found& found) {
    if (!noting_) return;
    const bool known = asked_next(kind, source, label, dir, keys);
    if (!known) cut();
    if (next_ == kSteps || keys_.size() + (known ? 0 : keys.size()) + found.size() > kIds || source > 0xFFFF) {
        noting_ = false;
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

/// Whether the next step of the run before was the same look-up.
bool Remembered::asked_next(Kind kind, std::uint32_t source, Label label, Dir dir, std::span<const TermId> keys) const {
    if (next_ >= count_) return false;
    const Step& step = steps_[next_];
    return step.kind == kind && step.source == source && step.label == label && step.dir == dir &&
           std::ranges::equal(this->keys(step), keys);
}

/// Forgets the steps of the run before from the next one on.
void Remembered::cut() {
    if (next_ == count_) return;
    keys_.resize(steps_[next_].at);
    count_ = next_;
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
        for (Matches& found : found_) found = Matches();
        matches_ = Matches();
    } else {
        cut();
        answer_ = answer;
        labels_ = labels;
    }
    noting_ = false;
}

bool Remembered::holds(std::span<const Source* const> sources, std::uint64_t labels) {
    recalls_ = labels_ != 0 && labels_ == labels;
    if (!recalls_) return false;
    labels_ = 0;  // until all is known to be the same: what throws leaves notes behind that the answer is not of
    for (same_ = 0; same_ < count_; ++same_) {
        const Step& step = steps_[same_];
        if (step.source >= sources.size() || !again(same_, *sources[step.source])) break;
    }
    const bool same = same_ == count_;
    misses_ = same ? 0 : std::min(misses_ + 1, kHabit + kLongestPauseBits);
    pause_ = misses_ <= kHabit ? 0 : 1u << (misses_ - kHabit);
    if (same) labels_ = labels;
    return same;
}

bool Remembered::again(std::size_t number, const Source& source) {
    const Step& step = steps_[number];
    const Matches& found = found_[number];
    switch (step.kind) {
        case Kind::Expand:
            return bring_up(number, source);
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

/// Notes what an expansion gives now. Whether that is what it gave.
bool Remembered::bring_up(std::size_t number, const Source& source) {
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
        same = look_up_again(number, source);
    }
    step.version = source.version();
    return same;
}

bool Remembered::look_up_again(std::size_t number, const Source& source) {
    const Step& step = steps_[number];
    Matches& found = found_[number];
    matches_.clear();
    source.expand(keys(step), step.label, step.dir, matches_);
    if (matches_.rows == found.rows && matches_.values == found.values) return true;
    std::swap(matches_, found);
    return false;
}

/// Puts what one key has now, matches_, in place of what it had. Whether that is the same.
bool Remembered::patch(Matches& found, std::uint32_t key) {
    const auto [first, last] = std::equal_range(found.rows.begin(), found.rows.end(), key);
    const auto at = first - found.rows.begin();
    const auto had = last - first, has = std::ssize(matches_.values);
    const auto values = found.values.begin() + at;
    if (had == has && std::equal(matches_.values.begin(), matches_.values.end(), values)) return true;
    const auto kept = std::min(had, has);
    std::copy_n(matches_.values.begin(), kept, values);
    if (had > has) {
        found.rows.erase(first + kept, last);
        found.values.erase(values + kept, values + had);
    } else {
        found.rows.insert(last, static_cast<std::size_t>(has - had), key);
        found.values.insert(values + had, matches_.values.begin() + kept, matches_.values.end());
    }
    return false;
}

const Matches* Remembered::recall(const EdgeSet& edges, Dir dir, std::span<const TermId> keys) {
    if (!noting_ || !recalls_ || !asked_next(Kind::Expand, edges.source_number, edges.label, dir, keys)) return nullptr;
    if (next_ > same_) bring_up(next_, *edges.source);
    const Matches& found = found_[next_];
    if (keys_.size() + found.values.size() > kIds) noting_ = false;
    ++next_;
    return &found;
}

}  // namespace penstock::exec
