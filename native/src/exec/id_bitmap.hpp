// A set of ids as a bitmap of pages. If ids are close together, such as the ids of vertices, the bitmap takes only a
// few bits for each id.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "exec/charge.hpp"
#include "exec/table.hpp"

namespace penstock::exec {

class IdBitmap {
public:
    /// Adds ids. Sets new_ones[i] to 1 if ids[i] was new. Throws LimitError if memory is exhausted.
    void insert(std::span<const TermId> ids, std::uint8_t* new_ones, Budget& budget) {
        for (const TermId id : ids) {
            if (id >> kPageBits != current_) turn_to(id >> kPageBits, budget);
            const std::uint64_t bit = std::uint64_t{1} << (id % 64);
            std::uint64_t& word = (*page_)[id / 64 % kWords];
            const bool is_new = (word & bit) == 0;
            word |= bit;
            size_ += is_new;
            *new_ones++ = is_new;
        }
    }
    /// Whether a table of the ids would take less memory.
    bool is_sparse() const {
        return pages_.size() > kFewPages && pages_.size() * sizeof(Page) > kMaxBytesPerId * size_;
    }
    /// The ids, in no particular order.
    std::vector<TermId> ids() const {
        std::vector<TermId> found;
        found.reserve(size_);
        for (const auto& [number, place] : numbers_)
            for (std::size_t i = 0; i < kWords; ++i)
                for (std::uint64_t word = (*pages_[place])[i]; word != 0; word &= word - 1)
                    found.push_back(number << kPageBits | i * 64 | static_cast<TermId>(std::countr_zero(word)));
        return found;
    }
    /// Empties the set, and releases its memory.
    void release(Budget& budget) {
        numbers_.clear();
        pages_.clear();
        size_ = 0;
        current_ = kNoPage;
        charge_.release(budget);
    }

private:
    static constexpr unsigned kPageBits = 15;
    static constexpr std::size_t kWords = (std::size_t{1} << kPageBits) / 64;
    static constexpr std::size_t kFewPages = 64;
    static constexpr std::size_t kMaxBytesPerId = 64;
    static constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
    using Page = std::array<std::uint64_t, kWords>;

    void turn_to(std::uint64_t number, Budget& budget) {
        const auto [found, is_new] = numbers_.try_emplace(number, pages_.size());
        if (is_new) {
            charge_.set(budget, (pages_.size() + 1) * (sizeof(Page) + kBytesOfNumber));
            pages_.push_back(std::make_unique<Page>());
        }
        current_ = number;
        page_ = pages_[found->second].get();
    }
    static constexpr std::size_t kBytesOfNumber = 64;  // of an entry of numbers_ and of pages_

    std::unordered_map<std::uint64_t, std::size_t> numbers_;  // by number of the page: its place
    std::vector<std::unique_ptr<Page>> pages_;
    std::size_t size_ = 0;
    std::uint64_t current_ = kNoPage;
    Page* page_ = nullptr;
    Charge charge_;
};

}  // namespace penstock::exec
