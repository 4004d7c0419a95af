#include "store/sort.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace penstock {

namespace {

constexpr std::size_t kRadixFrom = 256;  // below, comparing is as fast

/// Least significant byte first, leaving out the bytes in which all ends agree: most of them, as ids are dense numbers.
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

void drop_repetitions(std::vector<Keyed>& ends) {
    const auto same = [](const Keyed& a, const Keyed& b) {
        return a.vertex == b.vertex && a.label == b.label && a.value == b.value;
    };
    ends.erase(std::unique(ends.begin(), ends.end(), same), ends.end());
}

}  // namespace

void sort_ends(std::vector<Keyed>& ends) {
    const auto less = [](const Keyed& a, const Keyed& b) {
        if (a.vertex != b.vertex) return a.vertex < b.vertex;
        return a.label != b.label ? a.label < b.label : a.value < b.value;
    };
    if (ends.size() < kRadixFrom)
        std::sort(ends.begin(), ends.end(), less);
    else if (!std::is_sorted(ends.begin(), ends.end(), less))
        RadixSort(ends).by_vertex();
    drop_repetitions(ends);
}

void sort_by_label(std::vector<Keyed>& ends) {
    if (ends.empty()) return;
    RadixSort(ends).by_label();
    drop_repetitions(ends);
}

}  // namespace penstock
