// The first rows of an order while rows come and go, against sorting all rows.
#include "exec/ranked_rows.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "exec/row_order.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock::test {
namespace {

using exec::CountedRows;
using exec::RankedRows;
using exec::RankedShape;
using Row = std::vector<TermId>;

class Ranked : public testing::Test {
protected:
    TermId term(const std::string& iri) { return dictionary.intern({Kind::Iri, iri, {}, {}}); }
    static TermId number(std::int64_t value) {
        return encode_inline(std::to_string(value), std::string(kXsd) + "integer", "");
    }
    static TermId real(std::int64_t value) {
        return encode_inline(std::to_string(value) + ".0", std::string(kXsd) + "decimal", "");
    }

    void change(const Row& row, int count) {
        rows.add(row.data(), count, terms);
        if ((model[row] += count) == 0) model.erase(row);
    }
    /// The first rows by sorting.
    std::vector<Row> expected() const {
        std::vector<Row> all;
        for (const auto& [row, count] : model) all.insert(all.end(), static_cast<std::size_t>(count), row);
        std::ranges::sort(all, [&](const Row& a, const Row& b) {
            const auto cells = [](const Row& row) { return [&row](std::size_t column) { return row[column]; }; };
            return exec::compare_rows(shape.keys, shape.carried, cells(a), cells(b), terms) < 0;
        });
        all.resize(std::min(all.size(), first));
        return all;
    }
    std::vector<Row> found() {
        std::vector<Row> out;
        rows.settle(context);
        rows.for_each_first([&](const TermId* row, std::int64_t count) {
            for (; count > 0; --count) out.emplace_back(row, row + shape.width);
        });
        return out;
    }
    /// Drops all terms from the dictionary that no row has.
    void sweep() {
        dictionary.set_tick(++tick);
        for (const auto& [row, count] : model) dictionary.touch(row.data(), row.size());
        dictionary.sweep(tick);
    }
    template <class Make>
    void churn(std::size_t size, int rounds, Make make, int sweep_every = 0) {
        std::vector<Row> live;
        for (int round = 0; round < rounds; ++round) {
            const std::size_t target = round == 0 ? size : 1 + random() % (2 * size);
            // Some removals come before the additions of the same round, as in the change of a join.
            for (std::size_t i = 0; i < size / 8 + 1 && !live.empty(); ++i) {
                std::swap(live[random() % live.size()], live.back());
                change(live.back(), -1);
                live.pop_back();
            }
            while (live.size() < target) {
                live.push_back(make());
                change(live.back(), 1);
            }
            while (live.size() > target) {
                // The oldest or the newest ones, or any.
                const std::size_t at = round % 3 == 0 ? 0 : round % 3 == 1 ? live.size() - 1 : random() % live.size();
                change(live[at], -1);
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
            }
            ASSERT_EQ(found(), expected()) << "round " << round;
            ASSERT_LE(rows.size(), 4 * live.size() + 4096);
            if (sweep_every != 0 && round % sweep_every == 0) sweep();
        }
    }

    std::mt19937 random{7};
    Dictionary dictionary;
    LocalTerms terms{dictionary};
    Budget budget;
    ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
    Tick tick = 1;
    std::map<Row, std::int64_t> model;
    RankedShape shape{{{1, true}, {0, false}}, 2, 2};
    std::size_t first = 5;
    RankedRows rows{shape, first};
};

TEST_F(Ranked, no_rows_have_no_first_ones) { EXPECT_TRUE(found().empty()); }

TEST_F(Ranked, the_next_row_moves_up) {
    for (int i = 0; i < 10; ++i) change({number(i), number(i)}, 1);
    EXPECT_EQ(found().front(), (Row{number(9), number(9)}));
    change({number(9), number(9)}, -1);
    EXPECT_EQ(found().front(), (Row{number(8), number(8)}));
    EXPECT_EQ(found(), expected());
}

TEST_F(Ranked, equal_rows_count_as_often_as_they_occur) {
    for (int i = 0; i < 3; ++i) change({number(1), number(7)}, 1);
    change({number(1), number(6)}, 4);
    EXPECT_EQ(found(), expected());
    change({number(1), number(7)}, -2);
    EXPECT_EQ(found(), expected());
}

TEST_F(Ranked, equal_values_leave_the_order_to_the_next_key) {
    change({number(2), number(15)}, 1);
    change({number(1), real(15)}, 1);
    change({number(3), number(15)}, 1);
    EXPECT_EQ(found(), (std::vector<Row>{{number(1), real(15)}, {number(2), number(15)}, {number(3), number(15)}}));
}

TEST_F(Ranked, a_removal_may_come_before_its_addition) {
    change({number(1), number(7)}, -1);
    change({number(1), number(7)}, 1);
    change({number(2), number(7)}, 1);
    EXPECT_EQ(found(), (std::vector<Row>{{number(2), number(7)}}));
}

TEST_F(Ranked, few_rows_come_and_go) {
    churn(40, 200, [&] { return Row{number(random() % 30), number(random() % 4)}; });
}

TEST_F(Ranked, many_rows_come_and_go) {
    churn(6'000, 60, [&] { return Row{number(random() % 20'000), number(random() % 1'000)}; });
    EXPECT_GT(rows.leaves(), 0u);
}

TEST_F(Ranked, values_with_several_spellings_come_and_go) {
    churn(3'000, 40, [&] {
        const auto value = static_cast<std::int64_t>(random() % 50);
        return Row{number(random() % 500), random() % 2 == 0 ? number(value) : real(value)};
    });
}

TEST_F(Ranked, rows_come_in_the_order_of_their_keys) {
    std::int64_t next = 0;
    churn(4'000, 60, [&] { return Row{number(next % 3), number(++next)}; });
}

TEST_F(Ranked, rows_come_against_the_order_of_their_keys) {
    std::int64_t next = 0;
    churn(4'000, 60, [&] { return Row{number(next % 3), number(--next)}; });
}

TEST_F(Ranked, terms_of_removed_rows_leave_the_dictionary) {
    int next = 0;
    shape.keys = {{1, false}};
    churn(3'000, 40, [&] { return Row{number(next++), term("urn:" + std::to_string(random() % 9'000))}; }, 1);
    EXPECT_GT(rows.leaves(), 0u);
}

TEST_F(Ranked, large_leaves_are_divided_and_summed_up) {
    std::vector<Row> window;
    for (std::int64_t i = 0; i < 150'000; ++i) {
        window.push_back({number(i), number(i * 7'919 % 100'003)});
        change(window.back(), 1);
        if (i % 70'000 == 0) {
            ASSERT_EQ(found(), expected());
        }
    }
    ASSERT_EQ(found(), expected());
    EXPECT_GT(rows.leaves(), 4u);
    const std::size_t full = rows.size();
    for (std::size_t i = 0; i < window.size(); ++i) {
        change(window[i], -1);
        change({number(200'000 + static_cast<std::int64_t>(i)), window[i][1]}, 1);
        if (i % 40'000 == 0) {
            ASSERT_EQ(found(), expected());
        }
    }
    ASSERT_EQ(found(), expected());
    EXPECT_LT(rows.size(), 3 * full);
    EXPECT_LT(rows.bytes(), 12 * full * sizeof(TermId));
    for (const auto& [row, count] : std::map(model)) change(row, static_cast<int>(-count));
    EXPECT_TRUE(found().empty());
    EXPECT_EQ(rows.leaves(), 0u);
}

TEST(CountedRowsTest, equal_rows_are_summed_up) {
    Budget budget;
    CountedRows rows(1);
    for (TermId i = 0; i < 1'000; ++i) {
        const TermId cell = i % 10;
        rows.push(&cell, cell == 3 ? (i % 20 == 3 ? 1 : -1) : 2);
    }
    const std::int64_t total = rows.total();
    rows.sum(budget);
    EXPECT_EQ(rows.size(), 9u);
    EXPECT_EQ(rows.total(), total);
    std::set<TermId> cells;
    for (std::size_t i = 0; i < rows.size(); ++i) cells.insert(*rows.row(i));
    EXPECT_EQ(cells, (std::set<TermId>{0, 1, 2, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace penstock::test
