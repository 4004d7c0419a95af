// Property paths (SPARQL 1.1 §9).
#include "exec_fixture.hpp"

namespace penstock::test {
namespace {

class Paths : public ExecTest {
protected:
    Paths() {
        for (auto [s, p, o] : {std::tuple{1, 10, 2}, {2, 10, 3}, {3, 10, 1}, {3, 10, 4}, {4, 11, 5}, {1, 11, 4}})
            graph.add(s, p, o);
        graph.add(7, 10, 8, 100);
        graph.add(8, 10, 7, 101);
    }
    static Spec link(std::uint64_t p) { return Dict{{"link", p}}; }
    static Spec of(const char* kind, Spec path) { return Dict{{kind, path}}; }
    Spec path(Spec in, Spec s, Spec p, Spec o, Spec dataset = List{stored({0})}) {
        return n.node("path", {{"in", in}, {"s", s}, {"path", p}, {"o", o}, {"dataset", dataset}});
    }
    Rows ends(Spec s, Spec p, Spec o) { return run(n.plan(2, path(n.seed(), s, p, o))); }
};

TEST_F(Paths, star_reaches_each_node_once_also_on_cycles) {
    EXPECT_EQ(ends(id(1), of("star", link(10)), var(0)), (Rows{{1}, {2}, {3}, {4}}));
    EXPECT_EQ(ends(var(0), of("star", link(10)), id(4)), (Rows{{1}, {2}, {3}, {4}}));
}

TEST_F(Paths, plus_reaches_its_start_only_by_a_cycle) {
    EXPECT_EQ(ends(id(1), of("plus", link(10)), var(0)), (Rows{{1}, {2}, {3}, {4}}));
    EXPECT_EQ(ends(id(4), of("plus", link(10)), var(0)), (Rows{}));
}

TEST_F(Paths, a_bound_end_matches_itself_by_length_zero_outside_of_the_graph_too) {
    EXPECT_EQ(ends(id(99), of("star", link(10)), var(0)), (Rows{{99}}));
    EXPECT_EQ(ends(id(99), of("opt", link(10)), id(99)), (Rows{{}}));
    EXPECT_EQ(ends(id(99), of("star", link(10)), id(98)), (Rows{}));
}
TEST_F(Paths, between_variables_length_zero_stays_within_the_graph) {
    Spec values = n.node("values", {{"slots", ids({0})}, {"rows", List{ids({1}), ids({99})}}});
    auto root = [&](bool nodes_only, Spec path) {
        return n.node("path", {{"in", values},
                               {"s", var(0)},
                               {"path", path},
                               {"o", var(1)},
                               {"dataset", List{stored({0})}},
                               {"nodes_only", nodes_only}});
    };
    EXPECT_EQ(run(n.plan(2, root(true, of("opt", link(11))))), (Rows{{1, 1}, {1, 4}}));
    EXPECT_EQ(run(n.plan(2, root(false, of("opt", link(11))))), (Rows{{1, 1}, {1, 4}, {99, 99}}));
    EXPECT_EQ(run(n.plan(2, root(true, of("star", link(99))))), (Rows{{1, 1}}));
}

TEST_F(Paths, the_middle_of_a_sequence_is_a_variable) {
    Spec path = Dict{{"seq", List{of("opt", link(10)), of("opt", link(10))}}};
    EXPECT_EQ(ends(id(99), path, var(0)), (Rows{}));
    EXPECT_EQ(ends(id(99), path, id(99)), (Rows{{}}));
}

TEST_F(Paths, free_ends_range_over_the_nodes_of_the_graph) {
    Rows found = ends(var(0), of("opt", link(11)), var(1));
    EXPECT_EQ(found, (Rows{{1, 1}, {1, 4}, {2, 2}, {3, 3}, {4, 4}, {4, 5}, {5, 5}}));
    EXPECT_EQ(ends(var(0), of("star", link(99)), var(0)), (Rows{{1}, {2}, {3}, {4}, {5}}));
}

TEST_F(Paths, sequences_and_alternatives_keep_duplicates) {
    graph.add(1, 10, 6);
    graph.add(6, 10, 3);
    Spec two = Dict{{"seq", List{link(10), link(10)}}};
    EXPECT_EQ(ends(id(1), two, var(0)), (Rows{{3}, {3}}));
    EXPECT_EQ(ends(var(0), two, id(3)), (Rows{{1}, {1}}));
    EXPECT_EQ(ends(id(1), Dict{{"alt", List{link(11), link(11)}}}, var(0)), (Rows{{4}, {4}}));
    EXPECT_EQ(ends(id(1), two, id(3)), (Rows{{}, {}}));
}

TEST_F(Paths, inverse_turns_everything_below_it_round) {
    EXPECT_EQ(ends(id(5), of("inv", Dict{{"seq", List{link(10), link(11)}}}), var(0)), (Rows{{3}}));
    EXPECT_EQ(ends(id(4), of("plus", of("inv", link(10))), var(0)), (Rows{{1}, {2}, {3}}));
}

TEST_F(Paths, negated_sets_take_other_predicates_in_their_directions) {
    EXPECT_EQ(ends(id(1), Dict{{"nps", ids({10})}, {"inv", Spec()}}, var(0)), (Rows{{4}}));
    EXPECT_EQ(ends(id(4), Dict{{"nps", Spec()}, {"inv", ids({11})}}, var(0)), (Rows{{3}}));
    EXPECT_EQ(ends(id(4), Dict{{"nps", ids({})}, {"inv", ids({})}}, var(0)), (Rows{{1}, {3}, {5}}));
}

TEST_F(Paths, follow_many_rows_from_either_end) {
    Spec values = n.node("values", {{"slots", ids({0})}, {"rows", List{ids({1}), ids({4}), ids({1})}}});
    EXPECT_EQ(run(n.plan(2, path(values, var(0), of("plus", link(11)), var(1)))),
              (Rows{{1, 4}, {1, 4}, {1, 5}, {1, 5}, {4, 5}}));
    EXPECT_EQ(run(n.plan(2, path(values, var(1), of("plus", link(10)), var(0)))),
              (Rows{{1, 1}, {1, 1}, {1, 2}, {1, 2}, {1, 3}, {1, 3}, {4, 1}, {4, 2}, {4, 3}}));
}

TEST_F(Paths, merge_the_parts_of_a_dataset_into_one_graph) {
    Spec both = List{stored({100, 101})};
    EXPECT_EQ(run(n.plan(1, path(n.seed(), id(7), of("plus", link(10)), var(0), both))), (Rows{{7}, {8}}));
}

TEST_F(Paths, stay_within_one_graph_of_a_graph_variable) {
    Spec named = List{Dict{{"src", 0}, {"graphs", "named"}}};
    Spec root = n.node("path", {{"in", n.seed()},
                                {"s", id(7)},
                                {"path", of("plus", link(10))},
                                {"o", var(0)},
                                {"dataset", named},
                                {"graph", 1}});
    EXPECT_EQ(run(n.plan(2, root)), (Rows{{8, 100}}));
    Spec zero = n.node("path", {{"in", n.seed()},
                                {"s", id(7)},
                                {"path", of("star", link(99))},
                                {"o", var(0)},
                                {"dataset", named},
                                {"graph", 1}});
    EXPECT_EQ(run(n.plan(2, zero)), (Rows{{7, 100}, {7, 101}}));
}

TEST_F(Paths, reach_far_along_a_chain) {
    for (TermId i = 1000; i < 6000; ++i) graph.add(i, 20, i + 1);
    EXPECT_EQ(ends(id(1000), of("star", link(20)), var(0)).size(), 5001u);
}

TEST_F(Paths, end_in_a_limit_where_all_pairs_are_too_many) {
    memory_limit = 8 << 20;
    for (TermId i = 1000; i < 6000; ++i) graph.add(i, 20, i + 1);
    EXPECT_THROW(ends(var(0), of("star", link(20)), var(1)), LimitError);
}

}  // namespace
}  // namespace penstock::test
