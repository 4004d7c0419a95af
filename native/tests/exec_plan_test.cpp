// Plans as a whole: limits, errors, profiles, threads.
#include <chrono>
#include <thread>

#include "exec/rows.hpp"
#include "exec_fixture.hpp"

namespace penstock::test {
namespace {

class Plans : public ExecTest {
protected:
    Spec chain(std::uint64_t patterns) {
        Spec root = n.seed();
        for (std::uint64_t k = 0; k < patterns; ++k) root = n.scan(root, var(k), id(10), var(k + 1));
        return root;
    }
};

TEST_F(Plans, a_hundred_way_join_gives_its_answer) {
    for (TermId i = 1; i <= 110; ++i) graph.add(i, 10, i + 1);
    EXPECT_EQ(run(n.plan(101, chain(100))).size(), 11u);
}

TEST_F(Plans, a_hundred_way_join_that_explodes_ends_in_a_limit) {
    for (TermId i = 1; i <= 30; ++i)
        for (TermId k = 1; k <= 30; ++k) graph.add(i, 10, k);
    memory_limit = 64 << 20;
    EXPECT_THROW(run(n.plan(101, chain(100))), LimitError);
}

TEST_F(Plans, a_counted_product_ends_at_its_time_limit_without_using_memory) {
    for (TermId i = 1; i <= 100; ++i) graph.add(i, 10, i + 1000);
    Spec root = n.seed();
    for (std::uint64_t k = 0; k < 8; ++k) root = n.scan(root, var(2 * k), id(10), var(2 * k + 1));
    Spec count = Dict{{"agg", "count_star"}, {"distinct", false}, {"out", 20}};
    Plan plan(
        n.plan(21, n.node("group", {{"in", root}, {"keys", ids({})}, {"aggs", List{count}}, {"implicit", true}})));
    LocalTerms terms(dictionary);
    Budget budget(0.05, 4 << 20);
    ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
    const Source* source = &graph;
    Table seed = unit();
    RunInput input{&seed, {&source, 1}, &labels, &context, nullptr};
    auto start = std::chrono::steady_clock::now();
    EXPECT_THROW(plan.run(input), LimitError);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    EXPECT_LT(budget.used(), 4 << 20);
}

TEST_F(Plans, a_limit_stops_a_product_early) {
    for (TermId i = 1; i <= 1000; ++i) graph.add(i, 10, i + 1000);
    Spec root = n.seed();
    for (std::uint64_t k = 0; k < 8; ++k) root = n.scan(root, var(2 * k), id(10), var(2 * k + 1));
    EXPECT_EQ(run(n.plan(20, n.node("slice", {{"in", root}, {"offset", 0}, {"limit", 5}}))).size(), 5u);
}

TEST_F(Plans, a_hundred_thousand_values_join) {
    List rows;
    for (TermId i = 1; i <= 100000; ++i) rows.push_back(ids({i}));
    for (TermId i = 1; i <= 1000; ++i) graph.add(i * 50, 10, i);
    Spec values = n.node("values", {{"slots", ids({0})}, {"rows", rows}});
    EXPECT_EQ(run(n.plan(2, n.scan(values, var(0), id(10), var(1)))).size(), 1000u);
    Spec scan = n.scan(n.seed(), var(0), id(10), var(1));
    EXPECT_EQ(run(n.plan(2, n.node("join", {{"left", scan}, {"right", values}}))).size(), 1000u);
}

TEST_F(Plans, a_plan_goes_on_after_a_limit) {
    for (TermId i = 1; i <= 300; ++i) graph.add(i, 10, i + 1000);
    Spec product = n.scan(n.scan(n.seed(), var(0), id(10), var(1)), var(2), id(10), var(3));
    Plan plan(n.plan(4, product));
    memory_limit = 100000;
    EXPECT_THROW(run_table(plan, unit()), LimitError);
    memory_limit = 0;
    EXPECT_EQ(run_table(plan, unit()).rows, 90000u);
}

TEST_F(Plans, malformed_specs_are_errors) {
    EXPECT_THROW(Plan(n.plan(1, n.node("dance"))), Error);
    EXPECT_THROW(Plan(n.plan(1, n.scan(n.seed(), var(5), id(10), var(0)))), Error);
    EXPECT_THROW(Plan(n.plan(1, n.node("outer"))), Error);
    EXPECT_THROW(Plan(n.plan(1, Dict{{"op", "filter"}, {"id", 1}})), Error);
    EXPECT_THROW(Plan(n.plan(1, n.node("union", {{"inputs", List{}}}))), Error);
    EXPECT_THROW(Plan(Spec(7)), Error);
}

TEST_F(Plans, deep_nesting_is_an_error_not_a_crash) {
    Spec root = n.seed();
    for (int i = 0; i < 2500; ++i) root = n.node("reduced", {{"in", std::move(root)}});
    EXPECT_THROW(Plan(n.plan(0, std::move(root))), Error);
}

TEST_F(Plans, a_seed_of_other_columns_is_refused) {
    Plan plan(n.plan(2, n.seed(), ids({0, 1})));
    EXPECT_THROW(run_table(plan, unit()), Error);
}

TEST_F(Plans, a_missing_source_is_refused) {
    Plan plan(n.plan(2, n.scan(n.seed(), var(0), id(10), var(1), List{Dict{{"src", 3}}})));
    EXPECT_THROW(run_table(plan, unit()), Error);
}

TEST_F(Plans, the_profile_counts_rows_by_node) {
    for (TermId i = 1; i <= 3; ++i) graph.add(i, 10, i + 1);
    Profile profile;
    const Plan plan(n.plan(3, chain(2)));
    run_table(plan, unit(), &profile);
    std::ranges::sort(profile.rows, {}, &Profile::Figure::id);
    const auto rows = [&] {
        std::vector<std::uint64_t> values;
        for (const Profile::Figure& figure : profile.rows) values.push_back(figure.value);
        return values;
    };
    EXPECT_EQ(rows(), (std::vector<std::uint64_t>{1, 3, 2}));
    EXPECT_TRUE(profile.nanos.empty());
    profile.timed = true;
    run_table(plan, unit(), &profile);
    EXPECT_FALSE(profile.timed);
    EXPECT_EQ(profile.nanos.size(), 3u);
}

TEST_F(Plans, threads_run_one_plan_at_once) {
    for (TermId i = 1; i <= 100; ++i) graph.add(i, 10, i + 1);
    Spec scans = n.scan(n.scan(n.seed(), var(0), id(10), var(1)), var(1), id(10), var(2));
    Plan plan(n.plan(3, n.node("distinct", {{"in", scans}})));
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) wrong += run_table(plan, unit()).rows != 99;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(Plans, the_latest_time_of_a_tuple_is_the_greatest_of_the_windows) {
    windows.emplace_back(labels);
    windows.emplace_back(labels);
    windows[0].add(1, 10, 2, 0, 500);
    windows[1].add(1, 10, 2, 0, 700);
    Spec time = Dict{{"call", "timestamp"}, {"args", List{id(1), id(10), id(2)}}};
    Rows found = run(n.plan(1, n.node("extend", {{"in", n.seed()}, {"slot", 0}, {"expr", time}})));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0][0], kUnbound);
}

TEST(MultisetDifference, removes_rows_one_for_one) {
    Column a0{1, 1, 2, 1, 3}, a1{5, 5, 6, 5, 7}, b0{1, 3, 9}, b1{5, 8, 9};
    std::vector<std::span<const TermId>> a{a0, a1}, b{b0, b1};
    EXPECT_EQ(exec::multiset_difference(a, 5, b, 3), (std::vector<std::int64_t>{1, 2, 3, 4}));
    EXPECT_EQ(exec::multiset_difference(b, 3, a, 5), (std::vector<std::int64_t>{1, 2}));
}

TEST(SortBy, keeps_the_order_of_equals) {
    Table table;
    table.slots = {0, 1};
    table.columns = {{3, 1, 3, 0, 1}, {1, 2, 3, 4, 5}};
    table.rows = 5;
    exec::sort_by(table, 0);
    EXPECT_EQ(table.columns[0], (Column{0, 1, 1, 3, 3}));
    EXPECT_EQ(table.columns[1], (Column{4, 2, 5, 1, 3}));
    table.columns[0] = {TermId{1} << 60, 1, 2, 1, 0};
    exec::sort_by(table, 0);
    EXPECT_EQ(table.columns[1], (Column{3, 2, 1, 5, 4}));
}

}  // namespace
}  // namespace penstock::test
