// Solution modifiers, groups, and answers made of triples.
#include "exec_fixture.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock::test {
namespace {

TermId number(int value) { return encode_inline(std::to_string(value), std::string(kXsd) + "integer", ""); }

class Modifiers : public ExecTest {
protected:
    Spec values(std::initializer_list<std::uint64_t> slots, const Rows& rows) {
        List cells;
        for (const auto& row : rows) cells.emplace_back(List(row.begin(), row.end()));
        return n.node("values", {{"slots", ids(slots)}, {"rows", cells}});
    }
    Spec over(const char* op, Spec in, Dict more = {}) {
        more.insert(more.end(), {{"in", in}});
        return n.node(op, more);
    }
    static Spec key(Spec expr, bool desc = false) { return Dict{{"expr", expr}, {"desc", desc}}; }
    static Spec count(std::uint64_t out) { return Dict{{"agg", "count_star"}, {"distinct", false}, {"out", out}}; }
};

TEST_F(Modifiers, distinct_keeps_first_occurrences_in_order) {
    EXPECT_EQ(run_ordered(n.plan(2, over("distinct", values({0, 1}, {{2, 1}, {1, 1}, {2, 1}, {2, 0}, {1, 1}})))),
              (Rows{{2, 1}, {1, 1}, {2, 0}}));
}

TEST_F(Modifiers, order_is_stable_and_takes_each_key_in_turn) {
    Spec rows = values({0, 1}, {{number(2), 1}, {number(1), 2}, {number(2), 3}, {number(1), 4}, {0, 5}});
    EXPECT_EQ(run_ordered(n.plan(2, over("order", rows, {{"keys", List{key(var(0))}}}))),
              (Rows{{0, 5}, {number(1), 2}, {number(1), 4}, {number(2), 1}, {number(2), 3}}));
    EXPECT_EQ(run_ordered(n.plan(2, over("order", rows, {{"keys", List{key(var(0), true), key(var(1), true)}}}))),
              (Rows{{number(2), 3}, {number(2), 1}, {number(1), 4}, {number(1), 2}, {0, 5}}));
}

TEST_F(Modifiers, a_limited_order_gives_the_same_rows_as_a_full_one) {
    Rows rows;
    for (int i = 0; i < 20000; ++i) rows.push_back({number((i * 7919) % 101), number(i)});
    auto order = [&](Dict first) {
        first.emplace_back("keys", List{key(var(0))});
        return over("order", values({0, 1}, rows), first);
    };
    Rows all = run_ordered(n.plan(2, order({})));
    Rows some = run_ordered(n.plan(2, over("slice", order({{"first", 305}}), {{"offset", 5}, {"limit", 300}})));
    EXPECT_EQ(some, Rows(all.begin() + 5, all.begin() + 305));
}

TEST_F(Modifiers, slice_counts_over_morsels) {
    Rows rows;
    for (TermId i = 1; i <= 3000; ++i) rows.push_back({i});
    Rows found = run_ordered(n.plan(1, over("slice", values({0}, rows), {{"offset", 1000}, {"limit", 1500}})));
    EXPECT_EQ(found, Rows(rows.begin() + 1000, rows.begin() + 2500));
    EXPECT_TRUE(run(n.plan(1, over("slice", values({0}, rows), {{"offset", 0}, {"limit", 0}}))).empty());
    EXPECT_EQ(run(n.plan(1, over("slice", values({0}, rows), {{"offset", 2990}}))).size(), 10u);
}

TEST_F(Modifiers, slice_is_per_member) {
    Table seed = seed_table({0}, {{0}, {1}, {2}});
    for (TermId i = 0; i < 4; ++i) graph.add(5, 10, 20 + i);
    Spec rows = n.scan(n.seed(), id(5), id(10), var(1));
    Spec ordered = over("order", rows, {{"keys", List{key(var(1), true)}}, {"member", 0}});
    EXPECT_EQ(
        run_ordered(n.plan(2, over("slice", ordered, {{"offset", 1}, {"limit", 2}, {"member", 0}}), ids({0})), seed),
        (Rows{{0, 22}, {0, 21}, {1, 22}, {1, 21}, {2, 22}, {2, 21}}));
}

TEST_F(Modifiers, slice_is_per_graph_and_member) {
    Rows rows;
    for (TermId i = 0; i < 3; ++i)
        for (TermId graph = 7; graph < 9; ++graph)
            for (TermId member = 0; member < 2; ++member) rows.push_back({member, graph, 20 + i});
    EXPECT_EQ(
        run_ordered(n.plan(3, over("slice", values({0, 1, 2}, rows), {{"offset", 1}, {"limit", 1}, {"graph", 1}}))),
        (Rows{{1, 7, 20}, {1, 8, 20}}));
    EXPECT_EQ(run_ordered(n.plan(3, over("slice", values({0, 1, 2}, rows),
                                         {{"offset", 2}, {"limit", 5}, {"member", 0}, {"graph", 1}}))),
              (Rows{{0, 7, 22}, {1, 7, 22}, {0, 8, 22}, {1, 8, 22}}));
}

TEST_F(Modifiers, order_leaves_equal_values_to_the_next_key) {
    const TermId plain = number(15), point = encode_inline("15.0", std::string(kXsd) + "decimal", ""),
                 real = encode_inline("1.5e1", std::string(kXsd) + "double", "");
    Rows rows{{real, 6}, {plain, 1}, {point, 3}, {number(14), 9}};
    Spec keys = List{key(var(0), true), key(var(1))};
    EXPECT_EQ(run_ordered(n.plan(2, over("order", values({0, 1}, rows), {{"keys", keys}}))),
              (Rows{{plain, 1}, {point, 3}, {real, 6}, {number(14), 9}}));
    Spec cut = over("slice", over("order", values({0, 1}, rows), {{"keys", keys}}), {{"offset", 0}, {"limit", 2}});
    EXPECT_EQ(run_ordered(n.plan(2, cut)), (Rows{{plain, 1}, {point, 3}}));
}

TEST_F(Modifiers, group_gives_a_row_per_key) {
    Spec rows = values({0, 1}, {{1, 5}, {2, 5}, {1, 0}, {0, 7}});
    Spec bound = Dict{{"agg", "count"}, {"distinct", false}, {"expr", var(1)}, {"out", 3}};
    Spec root = over("group", rows, {{"keys", ids({0})}, {"aggs", List{count(2), bound}}, {"implicit", false}});
    EXPECT_EQ(run(n.plan(4, root)),
              (Rows{{0, number(1), number(1)}, {1, number(2), number(1)}, {2, number(1), number(1)}}));
}

TEST_F(Modifiers, group_over_nothing_gives_nothing_unless_it_is_implicit) {
    Spec nothing = n.node("empty", {{"slots", ids({0})}});
    EXPECT_TRUE(
        run(n.plan(2, over("group", nothing, {{"keys", ids({0})}, {"aggs", List{count(1)}}, {"implicit", false}})))
            .empty());
    EXPECT_EQ(run(n.plan(2, over("group", nothing, {{"keys", ids({})}, {"aggs", List{count(1)}}, {"implicit", true}}))),
              (Rows{{number(0)}}));
}

TEST_F(Modifiers, an_implicit_group_has_a_row_for_each_member) {
    graph.add(1, 10, 5);
    graph.add(1, 10, 6);
    Spec root = over("group", n.scan(n.seed(), var(1), id(10), var(2)),
                     {{"keys", ids({0})}, {"aggs", List{count(3)}}, {"implicit", true}});
    EXPECT_EQ(run(n.plan(4, root, ids({0, 1})), seed_table({0, 1}, {{0, 1}, {1, 2}, {2, 1}})),
              (Rows{{0, number(2)}, {1, number(0)}, {2, number(2)}}));
}

TEST_F(Modifiers, many_groups_grow_over_morsels) {
    Rows rows;
    for (TermId i = 0; i < 9000; ++i) rows.push_back({1 + i % 3000});
    Rows found = run(n.plan(
        2, over("group", values({0}, rows), {{"keys", ids({0})}, {"aggs", List{count(1)}}, {"implicit", false}})));
    ASSERT_EQ(found.size(), 3000u);
    for (const auto& row : found) EXPECT_EQ(row[1], number(3));
}

TEST_F(Modifiers, project_gives_exactly_its_columns) {
    EXPECT_EQ(run(n.plan(4, over("project", values({0, 1}, {{1, 2}}), {{"slots", ids({3, 1})}}))), (Rows{{0, 2}}));
}

TEST_F(Modifiers, construct_leaves_out_ill_formed_triples_and_duplicates) {
    TermId literal = number(5);
    Spec rows = values({0, 1}, {{1, 2}, {1, 2}, {0, 2}, {literal, 3}, {1, literal}});
    Spec t = List{List{var(0), id(10), var(1)}, List{var(0), var(1), id(9)}};
    EXPECT_EQ(run(n.plan(5, over("construct", rows, {{"template", t}, {"slots", ids({2, 3, 4})}}))),
              (Rows{{1, 2, 9}, {1, 10, 2}, {1, 10, literal}}));
}

TEST_F(Modifiers, construct_makes_a_blank_node_per_solution_and_label) {
    Spec t = List{List{var(0), id(10), Dict{{"bnode", 0}}}, List{Dict{{"bnode", 0}}, id(11), Dict{{"bnode", 1}}}};
    Rows found =
        run(n.plan(5, over("construct", values({0}, {{1}, {1}}), {{"template", t}, {"slots", ids({2, 3, 4})}})));
    ASSERT_EQ(found.size(), 4u);
    EXPECT_EQ(found[0][2], found[2][0]);
    EXPECT_EQ(found[1][2], found[3][0]);
    EXPECT_NE(found[0][2], found[1][2]);
    EXPECT_NE(found[2][0], found[2][2]);
}

TEST_F(Modifiers, construct_is_distinct_per_member) {
    Spec t = List{List{id(1), id(10), id(2)}};
    Spec root = over("construct", n.seed(), {{"template", t}, {"slots", ids({1, 2, 3})}, {"member", 0}});
    EXPECT_EQ(run(n.plan(4, root, ids({0})), seed_table({0}, {{7}, {7}, {8}})), (Rows{{7, 1, 10, 2}, {8, 1, 10, 2}}));
}

TEST_F(Modifiers, describe_follows_blank_nodes) {
    TermId blank = make_id(Tag::Blank, 1), other = make_id(Tag::Blank, 2);
    graph.add(1, 10, blank);
    graph.add(blank, 11, other);
    graph.add(other, 11, blank);
    graph.add(other, 12, 2);
    graph.add(2, 10, 3);
    Spec root = over("describe", n.node("empty", {{"slots", ids({})}}),
                     {{"terms", List{id(1)}}, {"dataset", List{stored({0})}}, {"slots", ids({0, 1, 2})}});
    EXPECT_EQ(run(n.plan(3, root)), (Rows{{1, 10, blank}, {blank, 11, other}, {other, 11, blank}, {other, 12, 2}}));
}

}  // namespace
}  // namespace penstock::test
