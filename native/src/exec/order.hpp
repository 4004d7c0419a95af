// ORDER BY. In a header, because a slice directly above sets the number of rows that it needs.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "exec/collected.hpp"
#include "exec/compiler.hpp"

namespace penstock::exec {

class Order final : public Unary {
public:
    Order(const Spec& spec, Compiler& compiler);
    /// Only the first `rows` rows of the order are needed.
    void limit(std::size_t rows) { limit_ = std::min(limit_, rows); }

private:
    static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
    struct Key {
        std::unique_ptr<Expression> value;
        bool descending;
    };

    void begin() override;
    bool consume(Table& rows) override;
    void finish() override;
    using Compare = int (*)(TermId, TermId, const LocalTerms&);
    bool before(std::uint32_t a, std::uint32_t b) const;
    int keys_order(std::uint32_t a, std::uint32_t b, Compare compare) const;
    void sort(std::size_t limit);
    void prune();

    std::vector<Key> keys_;
    int member_ = -1;
    std::size_t limit_ = kNoLimit;
    Schema held_;
    Collected rows_;
    Table extended_, buffer_;
    std::vector<std::uint32_t> order_;
    Charge order_charge_;
};

}  // namespace penstock::exec
