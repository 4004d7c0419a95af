// An index from keys, each of several term ids, to numbers: the members of a query set (docs/adr/0085-query-sets.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rdf/term.hpp"

namespace penstock {

/// A hash table with linear probing; an entry is a number and its key, in adjacent words. With one id per key, it takes
/// 23 to 46 bytes a key.
class KeyIndex {
public:
    /// `width`: the number of ids of a key. DataError for 0.
    explicit KeyIndex(std::size_t width);

    std::size_t width() const { return width_; }
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return words_.capacity() * sizeof(std::uint64_t); }

    /// The number of a key, 0 if the index does not contain it.
    std::uint64_t find(const TermId* key) const { return words_[place(key) * (width_ + 1)]; }

    /// Gives a key a number other than 0. Returns its previous number, 0 if it is new.
    std::uint64_t put(const TermId* key, std::uint64_t number) {
        if ((size_ + 1) * 10 > capacity() * 7) grow();
        std::uint64_t* const entry = &words_[place(key) * (width_ + 1)];
        const std::uint64_t before = entry[0];
        entry[0] = number;
        if (before == 0) {
            for (std::size_t i = 0; i < width_; ++i) entry[1 + i] = key[i];
            ++size_;
        }
        return before;
    }

    /// Removes a key. Returns its number, 0 if the index did not contain it.
    std::uint64_t remove(const TermId* key) {
        const std::size_t mask = capacity() - 1, step = width_ + 1;
        std::size_t hole = place(key);
        const std::uint64_t number = words_[hole * step];
        if (number == 0) return 0;
        // moves later entries of the same run back, so that no search ends at the hole
        for (std::size_t next = (hole + 1) & mask; words_[next * step] != 0; next = (next + 1) & mask) {
            const std::size_t home = hash(&words_[next * step + 1]) & mask;
            if (((next - home) & mask) < ((next - hole) & mask)) continue;
            for (std::size_t i = 0; i < step; ++i) words_[hole * step + i] = words_[next * step + i];
            hole = next;
        }
        words_[hole * step] = 0;
        --size_;
        return number;
    }

private:
    static constexpr std::size_t kLeast = 16;

    std::size_t capacity() const { return words_.size() / (width_ + 1); }
    std::size_t hash(const TermId* key) const;
    /// The place of a key's entry, or the empty place for it.
    std::size_t place(const TermId* key) const;
    void grow();

    std::size_t width_;
    std::size_t size_ = 0;
    std::vector<std::uint64_t> words_;
};

}  // namespace penstock
