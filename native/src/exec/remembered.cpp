#include "exec/remembered.hpp"

#include <algorithm>

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
    count_ = used_ = 0;
    if (pause_ != 0) {
        --pause_;
        return false;
    }
    noting_ = true;
    return true;
}

Remembered::Step* Remembered::add(Kind kind, std::uint32_t source, std::size_t keys, std::size_t found) {
    if (!noting_) return nullptr;
    if (count_ == kSteps || keys + found > kIds - used_ || source > 0xFFFF) {
        noting_ = false;
        return nullptr;
    }
    Step& step = steps_[count_++];
    step.source = static_cast<std::uint16_t>(source);
    step.keys = static_cast<std::uint8_t>(keys);
    step.found = static_cast<std::uint8_t>(found);
    step.kind = kind;
    return &step;
}

void Remembered::expanded(std::uint32_t source, Label label, Dir dir, std::span<const TermId> keys,
                          const Matches& found) {
    Step* const step = add(Kind::Expand, source, keys.size(), found.values.size());
    if (step == nullptr) return;
    step->label = label;
    step->dir = dir;
    for (const TermId key : keys) put(key);
    for (std::size_t i = 0; i < found.values.size(); ++i) {
        rows_[used_] = static_cast<std::uint8_t>(found.rows[i]);
        put(found.values[i]);
    }
}

void Remembered::tested(std::uint32_t source, Label label, std::span<const TermId> subjects,
                        std::span<const TermId> objects, std::span<const std::uint8_t> found) {
    Step* const step = add(Kind::Contains, source, subjects.size(), objects.size());
    if (step == nullptr) return;
    step->label = label;
    for (const TermId subject : subjects) put(subject);
    for (std::size_t i = 0; i < objects.size(); ++i) {
        rows_[used_] = found[i];
        put(objects[i]);
    }
}

void Remembered::probed(std::uint32_t source, Dir dir, std::span<const TermId> keys,
                        std::span<const std::uint32_t> rows, std::span<const Label> labels) {
    Step* const step = add(Kind::Labels, source, keys.size(), labels.size());
    if (step == nullptr) return;
    step->dir = dir;
    for (const TermId key : keys) put(key);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        rows_[used_] = static_cast<std::uint8_t>(rows[i]);
        put(labels[i]);
    }
}

void Remembered::end(const Table& answer, std::uint64_t labels) {
    if (!noting_ || answer.rows > kRows) {
        longest_ = pause_ = kLongestPause;
    } else {
        answer_ = answer;
        labels_ = labels;
    }
    noting_ = false;
}

bool Remembered::holds(std::span<const Source* const> sources, std::uint64_t labels) {
    if (labels_ == 0 || labels_ != labels) return false;
    std::size_t at = 0;
    bool same = true;
    for (std::size_t i = 0; i < count_ && same; ++i) {
        const Step& step = steps_[i];
        const std::size_t ids = std::size_t{step.keys} + step.found;
        same = step.source < sources.size() &&
               again(step, *sources[step.source], std::span(ids_).subspan(at, ids), std::span(rows_).subspan(at, ids));
        at += ids;
    }
    longest_ = same ? 0 : std::min(std::max(2 * longest_, 1u), kLongestPause);
    pause_ = longest_ / 2;  // once is no habit
    return same;
}

bool Remembered::again(const Step& step, const Source& source, std::span<const TermId> ids,
                       std::span<const std::uint8_t> rows) {
    const auto keys = ids.first(step.keys), found = ids.subspan(step.keys);
    const auto found_rows = rows.subspan(step.keys);
    const auto equal = [&](const auto& now_rows, const auto& now) {
        return now.size() == found.size() && std::equal(now.begin(), now.end(), found.begin()) &&
               std::equal(now_rows.begin(), now_rows.end(), found_rows.begin());
    };
    matches_.clear();
    switch (step.kind) {
        case Kind::Expand:
            source.expand(keys, step.label, step.dir, matches_);
            break;
        case Kind::Labels:
            found_labels_.clear();
            source.labels_of(keys, step.dir, matches_.rows, found_labels_);
            return equal(matches_.rows, found_labels_);
        case Kind::Contains: {
            std::array<std::uint8_t, kIds> flags{};
            source.contains(keys, step.label, found, std::span(flags).first(step.found));
            return std::equal(found_rows.begin(), found_rows.end(), flags.begin());
        }
    }
    return equal(matches_.rows, matches_.values);
}

}  // namespace penstock::exec
