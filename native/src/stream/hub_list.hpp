// The neighbours of a vertex that has many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "source.hpp"

namespace penstock {

/// A queue: values are in the order in which they came, or last came again. Edges of a window leave in that order too,
/// so the one to be removed is at the front. A value that comes again leaves a hole; it is found by its id, by
/// bisection.
class HubList {
public:
    /// Values that have no ids yet; they are few, and searched one by one.
    explicit HubList(std::span<const TermId> values)
        : values_(values.begin(), values.end()),
          ids_(values.size()),
          count_(values.size()),
          identified_(values.size()) {}

    std::size_t size() const { return count_; }
    std::size_t bytes() const {
        return sizeof *this + values_.capacity() * sizeof(TermId) + ids_.capacity() * sizeof(std::uint32_t);
    }
    std::span<const TermId> values() {
        if (values_.size() - begin_ != count_) close_holes();
        return {values_.data() + begin_, count_};
    }
    const TermId* next() const { return values_.data() + values_.size(); }  // where the next value will be

    /// Ids ascend, modulo 2^32.
    void add(TermId value, std::uint32_t id) {
        if (values_.size() == values_.capacity() && count_ <= values_.size() / 2) close_holes();
        values_.push_back(value);
        ids_.push_back(id);
        ++count_;
    }
    void refresh(TermId value, std::uint32_t before, std::uint32_t id) {
        remove_at(find(value, before));
        add(value, id);
    }
    void remove(TermId value) {
        remove_at(
            static_cast<std::size_t>(std::find(values_.begin() + begin_, values_.end(), value) - values_.begin()));
        if (count_ < values_.capacity() / 8) {
            close_holes();
            values_.shrink_to_fit();
            ids_.shrink_to_fit();
        }
    }

private:
    static constexpr TermId kHole = 0;

    std::size_t find(TermId value, std::uint32_t id) const {
        const std::size_t first = std::max(begin_, identified_);
        const auto older = [](std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; };
        const auto found = std::lower_bound(ids_.begin() + static_cast<std::ptrdiff_t>(first), ids_.end(), id, older);
        const auto place = static_cast<std::size_t>(found - ids_.begin());
        if (place < values_.size() && values_[place] == value) return place;
        return static_cast<std::size_t>(std::find(values_.begin() + begin_, values_.begin() + first, value) -
                                        values_.begin());
    }
    void remove_at(std::size_t place) {
        values_[place] = kHole;
        --count_;
        while (begin_ < values_.size() && values_[begin_] == kHole) ++begin_;
    }
    void close_holes() {
        std::size_t to = 0, unidentified = 0;
        for (std::size_t from = begin_; from < values_.size(); ++from) {
            if (values_[from] == kHole) continue;
            unidentified += from < identified_;
            ids_[to] = ids_[from];
            values_[to++] = values_[from];
        }
        values_.resize(to);
        ids_.resize(to);
        begin_ = 0;
        identified_ = unidentified;
    }

    std::vector<TermId> values_;  // the one at begin_ is no hole
    std::vector<std::uint32_t> ids_;
    std::size_t begin_ = 0, count_ = 0;
    std::size_t identified_;  // values before this one have no id
};

}  // namespace penstock
