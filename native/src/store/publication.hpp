// The stores to words that make a prepared commit visible, in order. The preparation can fail, and changes nothing that
// readers load. The publication cannot fail.
#pragma once

#include <cstdint>
#include <vector>

#include "store/layout.hpp"

namespace penstock {

class Publication {
public:
    void store(std::uint64_t& word, std::uint64_t value) { stores_.push_back({&word, value}); }
    void run() {
        // Release order: each store to a word publishes everything that was prepared (values, records, extents), and
        // the earlier stores to words (head before state).
        for (const auto& [word, value] : stores_) layout::store_release(*word, value);
        stores_.clear();
    }
    void clear() { stores_.clear(); }

private:
    struct Store {
        std::uint64_t* word;
        std::uint64_t value;
    };
    std::vector<Store> stores_;
};

}  // namespace penstock
