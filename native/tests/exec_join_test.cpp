// Joins of independent sides with SPARQL's compatibility, and the correlated operators.
#include "exec_fixture.hpp"

namespace penstock::test {
namespace {

class Joins : public ExecTest {
protected:
    Spec values(std::initializer_list<std::uint64_t> slots,
                std::initializer_list<std::initializer_list<std::uint64_t>> rows) {
        List cells;
        for (const auto& row : rows) cells.push_back(ids(row));
        return n.node("values", {{"slots", ids(slots)}, {"rows", cells}});
    }
    Spec two(const char* op, Spec left, Spec right, Dict more = {}) {
        more.insert(more.end(), {{"left", left}, {"right", right}});
        return n.node(op, more);
    }
    static Spec equal(Spec a, Spec b) { return Dict{{"call", "="}, {"args", List{a, b}}}; }
};

TEST_F(Joins, join_on_shared_variables) {
    Spec left = values({0, 1}, {{1, 2}, {1, 3}, {4, 5}}), right = values({1, 2}, {{2, 7}, {2, 8}, {5, 9}});
    EXPECT_EQ(run(n.plan(3, two("join", left, right))), (Rows{{1, 2, 7}, {1, 2, 8}, {4, 5, 9}}));
}

TEST_F(Joins, without_a_shared_variable_a_join_is_a_product) {
    EXPECT_EQ(run(n.plan(2, two("join", values({0}, {{1}, {2}}), values({1}, {{3}, {4}})))),
              (Rows{{1, 3}, {1, 4}, {2, 3}, {2, 4}}));
}

TEST_F(Joins, an_unbound_cell_joins_with_everything_and_takes_the_bound_value) {
    Spec left = values({0, 1}, {{1, 0}, {2, 5}}), right = values({0, 1, 2}, {{1, 4, 7}, {0, 5, 8}, {2, 0, 9}});
    EXPECT_EQ(run(n.plan(3, two("join", left, right))), (Rows{{1, 4, 7}, {1, 5, 8}, {2, 5, 8}, {2, 5, 9}}));
}

TEST_F(Joins, left_join_keeps_unmatched_rows_once) {
    Spec left = values({0}, {{1}, {2}, {2}}), right = values({0, 1}, {{1, 5}, {1, 6}});
    EXPECT_EQ(run(n.plan(2, two("leftjoin", left, right))), (Rows{{1, 5}, {1, 6}, {2, 0}, {2, 0}}));
}

TEST_F(Joins, a_left_joins_condition_sees_both_sides) {
    Spec left = values({0, 2}, {{1, 5}, {2, 5}}), right = values({0, 1}, {{1, 5}, {1, 6}, {2, 6}});
    EXPECT_EQ(run(n.plan(3, two("leftjoin", left, right, {{"expr", equal(var(1), var(2))}}))),
              (Rows{{1, 5, 5}, {2, 5, 0}}));
}

TEST_F(Joins, minus_removes_only_rows_that_share_a_bound_variable) {
    Spec left = values({0, 1}, {{1, 2}, {3, 0}, {0, 0}});
    EXPECT_EQ(run(n.plan(3, two("minus", left, values({0}, {{1}})))), (Rows{{0, 0}, {3, 0}}));
    EXPECT_EQ(run(n.plan(3, two("minus", left, values({2}, {{1}})))), (Rows{{0, 0}, {1, 2}, {3, 0}}));
    EXPECT_EQ(run(n.plan(3, two("minus", left, values({0, 1}, {{0, 9}, {0, 2}})))), (Rows{{0, 0}, {3, 0}}));
}

TEST_F(Joins, slots_that_minus_ignores_must_be_equal_but_share_nothing) {
    Spec left = values({0, 1}, {{1, 2}, {2, 2}});
    EXPECT_EQ(run(n.plan(2, two("minus", left, values({0}, {{1}, {2}}), {{"ignore", ids({0})}}))),
              (Rows{{1, 2}, {2, 2}}));
    EXPECT_EQ(run(n.plan(2, two("minus", left, values({0, 1}, {{1, 2}}), {{"ignore", ids({0})}}))), (Rows{{2, 2}}));
}

TEST_F(Joins, optional_numbers_its_outer_rows) {
    graph.add(1, 10, 5);
    graph.add(1, 10, 6);
    Spec inner = n.scan(n.node("outer"), var(0), id(10), var(1));
    Spec root = n.node("optional", {{"in", values({0}, {{1}, {2}, {1}})}, {"inner", inner}, {"row", 2}});
    EXPECT_EQ(run(n.plan(3, root)), (Rows{{1, 5}, {1, 5}, {1, 6}, {1, 6}, {2, 0}}));
}

TEST_F(Joins, optional_runs_over_more_rows_than_a_morsel) {
    Table seed = seed_table({0}, {});
    for (TermId i = 1; i <= 5000; ++i) {
        seed.columns[0].push_back(i);
        if (i % 3 == 0) graph.add(i, 10, i + 1);
    }
    seed.rows = 5000;
    Spec inner = n.scan(n.node("outer"), var(0), id(10), var(1));
    Rows rows = run(n.plan(3, n.node("optional", {{"in", n.seed()}, {"inner", inner}, {"row", 2}}), ids({0})), seed);
    ASSERT_EQ(rows.size(), 5000u);
    for (const auto& row : rows) EXPECT_EQ(row[1], row[0] % 3 == 0 ? row[0] + 1 : 0);
}

TEST_F(Joins, semijoin_keeps_rows_with_or_without_a_match) {
    graph.add(1, 10, 5);
    graph.add(1, 10, 6);
    auto root = [&](bool anti) {
        Spec inner = n.scan(n.node("outer"), var(0), id(10), var(1));
        return n.node("semijoin", {{"in", values({0}, {{1}, {2}, {1}})}, {"inner", inner}, {"row", 2}, {"anti", anti}});
    };
    EXPECT_EQ(run(n.plan(3, root(false))), (Rows{{1}, {1}}));
    EXPECT_EQ(run(n.plan(3, root(true))), (Rows{{2}}));
}

TEST_F(Joins, semijoin_over_a_union_tests_each_input_on_the_rows_without_a_match) {
    for (auto [s, p] : {std::pair{1, 10}, {3, 10}, {2, 11}, {3, 11}}) graph.add(s, p, 5);
    std::uint64_t second = 0;
    auto root = [&](bool anti) {
        List inputs;
        for (const TermId predicate : {10, 11, 12}) {
            inputs.push_back(n.scan(n.node("outer"), var(0), id(predicate), id(5)));
            if (predicate == 11) second = inputs.back().at("id").as_int();
        }
        Spec inner = n.node("union", {{"inputs", inputs}});
        return n.node("semijoin", {{"in", values({0, 1}, {{1, 7}, {2, 8}, {4, 9}, {3, 7}, {1, 8}})},
                                   {"inner", inner},
                                   {"row", 2},
                                   {"anti", anti}});
    };
    const Plan plan(n.plan(3, root(false)));
    Profile profile;
    EXPECT_EQ(rows_of(run_table(plan, unit(), &profile)), (Rows{{1, 7}, {2, 8}, {3, 7}, {1, 8}}));
    const auto is_second = [&](const Profile::Figure& figure) { return figure.id == second; };
    EXPECT_EQ(std::ranges::find_if(profile.rows, is_second)->value, 1u);
    EXPECT_EQ(run(n.plan(3, root(true))), (Rows{{4, 9}}));
}

TEST_F(Joins, exists_tests_a_sub_plan_for_each_row) {
    graph.add(1, 10, 5);
    Spec sub = Dict{{"node", n.scan(n.node("outer"), var(0), id(10), var(1))}, {"row", 2}};
    Spec test = Dict{{"exists", 0}, {"not", true}};
    Spec root = n.node("filter", {{"in", values({0}, {{1}, {2}})}, {"expr", test}});
    EXPECT_EQ(run(n.plan(3, root, List{}, List{sub})), (Rows{{2}}));
}

TEST_F(Joins, union_concatenates_and_leaves_missing_slots_unbound) {
    Spec root = n.node(
        "union",
        {{"inputs", List{values({0}, {{1}}), values({1, 0}, {{2, 3}}), n.node("empty", {{"slots", ids({2})}})}}});
    EXPECT_EQ(run(n.plan(3, root)), (Rows{{1, 0, 0}, {3, 2, 0}}));
}

TEST_F(Joins, an_independent_side_of_a_sub_plan_sees_the_seed) {
    graph.add(1, 10, 5);
    graph.add(2, 10, 6);
    Spec side = n.scan(n.seed(), var(0), id(10), var(1));
    Spec inner = two("join", n.node("outer"), side);
    Spec root = n.node("optional", {{"in", n.seed()}, {"inner", inner}, {"row", 2}});
    EXPECT_EQ(run(n.plan(3, root, ids({0})), seed_table({0}, {{1}, {2}, {3}})), (Rows{{1, 5}, {2, 6}, {3, 0}}));
}

}  // namespace
}  // namespace penstock::test
