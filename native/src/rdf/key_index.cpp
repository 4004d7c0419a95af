#include "rdf/key_index.hpp"

#include <algorithm>
#include <utility>

#include "errors.hpp"
#include "mix.hpp"

namespace penstock {

KeyIndex::KeyIndex(std::size_t width) : width_(width), words_(kLeast * (width + 1)) {
    if (width == 0) throw DataError("a key has at least one id");
}

std::size_t KeyIndex::hash(const TermId* key) const {
    std::uint64_t mixed = 0;
    for (std::size_t i = 0; i < width_; ++i) mixed = mix(mixed ^ key[i]);
    return static_cast<std::size_t>(mixed);
}

std::size_t KeyIndex::place(const TermId* key) const {
    const std::size_t mask = capacity() - 1, step = width_ + 1;
    std::size_t at = hash(key) & mask;
    while (words_[at * step] != 0 && !std::equal(key, key + width_, &words_[at * step + 1])) at = (at + 1) & mask;
    return at;
}

void KeyIndex::grow() {
    const std::size_t step = width_ + 1;
    std::vector<std::uint64_t> before(words_.size() * 2);
    std::swap(before, words_);
    for (std::size_t at = 0; at < before.size(); at += step) {
        if (before[at] == 0) continue;
        std::copy_n(&before[at], step, &words_[place(&before[at + 1]) * step]);
    }
}

}  // namespace penstock
