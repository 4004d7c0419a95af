// The stores that make a prepared commit visible, in order. Preparation may fail and changes nothing that readers load;
// publication cannot fail.
#pragma once

#include <cstdint>
#include <vector>

#include "store/layout.hpp"

namespace penstock {

class Publication {
public:
    void store(std::uint64_t& word, std::uint64_t value) { stores_.push_back({&word, value}); }
    void run() {
        // Release: each store publishes all that was prepared (values, records, extents) and the stores before it (head
        // before state).
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
