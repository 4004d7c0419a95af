#include "store/sort.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

namespace penstock {

namespace {

constexpr std::size_t kRadixFrom = 1024;  // words
constexpr std::size_t kDigitsFrom = 24;
constexpr int kDigitBits = 8;
// The minimum for ends that do not fit into words; below it, a comparison sort is as fast.
constexpr std::size_t kWholeRadixFrom = 256;

enum class Order : std::uint8_t { Vertex, Label };  // by (vertex, label, value), or (label, vertex, value)

bool less(const Keyed& a, const Keyed& b) {
    if (a.vertex != b.vertex) return a.vertex < b.vertex;
    return a.label != b.label ? a.label < b.label : a.value < b.value;
}

bool same(const Keyed& a, const Keyed& b) { return a.vertex == b.vertex && a.label == b.label && a.value == b.value; }

/// Packs the ends' differing bits into one word each, in the order of the sort. Ids are dense numbers, so they mostly
/// fit, and words are moved and compared three times as fast.
class Packing {
public:
    Packing(const std::vector<Keyed>& ends, Order order) : first_(ends[0]) {
        Keyed differing{0, 0, 0};
        for (const Keyed& end : ends) {
            differing.vertex |= end.vertex ^ first_.vertex;
            differing.label |= end.label ^ first_.label;
            differing.value |= end.value ^ first_.value;
        }
        vertex_.bits = std::bit_width(differing.vertex);
        label_.bits = std::bit_width(differing.label);
        value_.bits = std::bit_width(differing.value);
        vertex_.shift = value_.bits + (order == Order::Vertex ? label_.bits : 0);
        label_.shift = value_.bits + (order == Order::Vertex ? 0 : vertex_.bits);
    }
    int bits() const { return vertex_.bits + label_.bits + value_.bits; }
    int value_bits() const { return value_.bits; }  // the lowest bits in either order

    std::uint64_t pack(const Keyed& end) const {
        return vertex_.put(end.vertex) | label_.put(end.label) | value_.put(end.value);
    }
    Keyed unpack(std::uint64_t word) const {
        return {vertex_.take(word, first_.vertex), static_cast<Label>(label_.take(word, first_.label)),
                value_.take(word, first_.value)};
    }

private:
    struct Field {
        int bits = 0, shift = 0;
        std::uint64_t mask() const { return (std::uint64_t{1} << bits) - 1; }
        std::uint64_t put(std::uint64_t field) const { return (field & mask()) << shift; }
        std::uint64_t take(std::uint64_t word, std::uint64_t rest) const {
            return (rest & ~mask()) | (word >> shift & mask());
        }
    };
    Keyed first_;
    Field vertex_, label_, value_;
};

// The word sorts use as many places again behind the input; they return the position of the result.

/// Least significant digit first, from bit `low` on. Without comparisons, and so without mispredicted branches.
std::uint64_t* radix_sort(std::uint64_t* from, std::size_t n, int low, int bits) {
    std::uint64_t* to = from + n;
    const int passes = (bits - low + kDigitBits - 1) / kDigitBits;
    for (int pass = 0; pass < passes; ++pass) {
        const int end = low + (bits - low) / (passes - pass);  // digits of equal width: a small table for few words
        const std::size_t mask = (std::size_t{1} << (end - low)) - 1;
        std::array<std::uint32_t, 1u << kDigitBits> at;
        std::fill_n(at.begin(), mask + 1, 0);
        for (std::size_t i = 0; i < n; ++i) ++at[from[i] >> low & mask];
        std::uint32_t begin = 0;
        for (std::size_t digit = 0; digit <= mask; ++digit) begin += std::exchange(at[digit], begin);
        for (std::size_t i = 0; i < n; ++i) to[at[from[i] >> low & mask]++] = from[i];
        std::swap(from, to);
        low = end;
    }
    return from;
}

/// For words in groups most of which have one element: sorts each group by itself.
void sort_within(std::uint64_t* words, std::size_t n, int group_shift) {
    for (std::size_t i = 1; i < n; ++i) {
        if (words[i - 1] <= words[i]) continue;
        const std::uint64_t group = words[i] >> group_shift;
        std::size_t begin = i - 1, end = i + 1;
        while (begin > 0 && words[begin - 1] >> group_shift == group) --begin;
        while (end < n && words[end] >> group_shift == group) ++end;
        std::sort(words + begin, words + end);
        i = end;
    }
}

/// For few words, sorts only the bits from `group_shift` on by digits.
std::uint64_t* sort_words(std::uint64_t* words, std::size_t n, int group_shift, int bits) {
    if (std::is_sorted(words, words + n)) return words;
    if (n >= kRadixFrom) return radix_sort(words, n, 0, bits);
    if (n < kDigitsFrom) {
        std::sort(words, words + n);
        return words;
    }
    words = radix_sort(words, n, group_shift, bits);
    sort_within(words, n, group_shift);
    return words;
}

/// Sorts and removes duplicates if the ends' differing bits fit into words; returns whether they do.
bool sort_packed(std::vector<Keyed>& ends, Order order) {
    const Packing packing(ends, order);
    if (packing.bits() > 63 || ends.size() > UINT32_MAX) return false;
    const std::size_t n = ends.size();
    const auto memory = std::make_unique_for_overwrite<std::uint64_t[]>(2 * n);
    std::uint64_t* words = memory.get();
    std::transform(ends.begin(), ends.end(), words, [&](const Keyed& end) { return packing.pack(end); });
    words = sort_words(words, n, packing.value_bits(), packing.bits());
    std::uint64_t* const end = std::unique(words, words + n);
    ends.resize(static_cast<std::size_t>(end - words));
    std::transform(words, end, ends.begin(), [&](std::uint64_t word) { return packing.unpack(word); });
    return true;
}

/// For arbitrary ends: least significant byte first; skips bytes in which all ends agree.
class RadixSort {
public:
    explicit RadixSort(std::vector<Keyed>& ends) : from_(ends), to_(ends.size()) {}

    void by_vertex() {
        by([](const Keyed& end) { return end.value; });
        by([](const Keyed& end) { return end.label; });
        by([](const Keyed& end) { return end.vertex; });
    }
    void by_label() {
        by([](const Keyed& end) { return end.value; });
        by([](const Keyed& end) { return end.vertex; });
        by([](const Keyed& end) { return end.label; });
    }

private:
    template <class Field>
    void by(Field field) {
        std::uint64_t differing = 0;
        for (const Keyed& end : from_) differing |= field(end) ^ field(from_[0]);
        for (int shift = 0; shift < 64; shift += 8)
            if ((differing >> shift & 0xFF) != 0)
                pass([=](const Keyed& end) { return std::uint64_t{field(end)} >> shift & 0xFF; });
    }
    template <class Digit>
    void pass(Digit digit) {
        std::array<std::size_t, 256> at{};
        for (const Keyed& end : from_) ++at[digit(end)];
        std::size_t begin = 0;
        for (std::size_t& count : at) begin += std::exchange(count, begin);
        for (const Keyed& end : from_) to_[at[digit(end)]++] = end;
        from_.swap(to_);
    }

    std::vector<Keyed>& from_;
    std::vector<Keyed> to_;
};

void drop_repetitions(std::vector<Keyed>& ends) { ends.erase(std::unique(ends.begin(), ends.end(), same), ends.end()); }

}  // namespace

void sort_ends(std::vector<Keyed>& ends) {
    if (ends.size() < 2 || sort_packed(ends, Order::Vertex)) return;
    if (ends.size() < kWholeRadixFrom)
        std::sort(ends.begin(), ends.end(), less);
    else if (!std::is_sorted(ends.begin(), ends.end(), less))
        RadixSort(ends).by_vertex();
    drop_repetitions(ends);
}

void sort_by_label(std::vector<Keyed>& ends) {
    if (ends.size() < 2 || sort_packed(ends, Order::Label)) return;
    RadixSort(ends).by_label();
    drop_repetitions(ends);
}

}  // namespace penstock
