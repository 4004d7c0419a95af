// Triple patterns, by which positions are bound.
#include "exec_fixture.hpp"
#include "store/store.hpp"

namespace penstock::test {
namespace {

class Scan : public ExecTest {
protected:
    Scan() {
        for (auto [s, p, o] : {std::tuple{1, 10, 2}, {1, 10, 3}, {2, 10, 3}, {3, 11, 1}, {3, 11, 3}, {1, 11, 2}})
            graph.add(s, p, o);
        graph.add(1, 10, 2, 100);
        graph.add(7, 10, 8, 100);
        graph.add(7, 10, 8, 101);
    }
    Spec both = List{stored({0, 100})};
    Spec named = List{Dict{{"src", 0}, {"graphs", "named"}}};
};

TEST_F(Scan, gives_all_edges_where_both_ends_are_free) {
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), id(10), var(1)))), (Rows{{1, 2}, {1, 3}, {2, 3}}));
}

TEST_F(Scan, expands_from_a_constant_end) {
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), id(1), id(10), var(0)))), (Rows{{2}, {3}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), id(10), id(3)))), (Rows{{1}, {2}}));
}

TEST_F(Scan, tests_a_constant_triple) {
    EXPECT_EQ(run(n.plan(0, n.scan(n.seed(), id(1), id(10), id(2)))), (Rows{{}}));
    EXPECT_EQ(run(n.plan(0, n.scan(n.seed(), id(2), id(10), id(1)))), (Rows{}));
}

TEST_F(Scan, expands_each_row_from_its_bound_end) {
    Spec first = n.scan(n.seed(), var(0), id(10), var(1));
    EXPECT_EQ(run(n.plan(3, n.scan(first, var(1), id(11), var(2)))),
              (Rows{{1, 3, 1}, {1, 3, 3}, {2, 3, 1}, {2, 3, 3}}));
    EXPECT_EQ(run(n.plan(3, n.scan(first, var(2), id(11), var(0)))), (Rows{{1, 2, 3}, {1, 3, 3}, {2, 3, 1}}));
}

TEST_F(Scan, tests_each_row_where_both_ends_are_bound) {
    Spec first = n.scan(n.seed(), var(0), id(10), var(1));
    EXPECT_EQ(run(n.plan(2, n.scan(first, var(1), id(11), var(0)))), (Rows{{1, 3}}));
    EXPECT_EQ(run(n.plan(2, n.scan(first, var(0), id(11), id(2)))), (Rows{{1, 2}, {1, 3}}));
}

TEST_F(Scan, binds_a_free_predicate) {
    EXPECT_EQ(run(n.plan(3, n.scan(n.seed(), id(1), var(0), var(1)))), (Rows{{10, 2}, {10, 3}, {11, 2}}));
    EXPECT_EQ(run(n.plan(3, n.scan(n.seed(), var(1), var(0), id(3)))), (Rows{{1, 10}, {2, 10}, {3, 11}}));
    EXPECT_EQ(run(n.plan(3, n.scan(n.seed(), id(1), var(0), id(2)))), (Rows{{10}, {11}}));
    EXPECT_EQ(run(n.plan(3, n.scan(n.seed(), var(0), var(1), var(2)))).size(), 6u);
}

TEST_F(Scan, joins_the_edges_with_an_indexed_seed) {
    const std::uint64_t usual = exec::IndexedSeed::from.exchange(0);
    const Plan outward(n.plan(3, n.scan(n.seed(), var(1), id(10), var(2)), ids({0, 1})));
    const Plan inward(n.plan(3, n.scan(n.seed(), var(2), id(10), var(1)), ids({0, 1})));
    const auto found = [this](const Plan& plan, Rows members) {
        exec::IndexedSeed seed(seed_table({0, 1}, std::move(members)));
        seed.begin_run(plan.seed());
        return rows_of(run_table(plan, seed.table(), nullptr, &seed));
    };
    const Rows members{{11, 2}, {12, 1}, {13, 99}, {14, 3}, {15, 1}};
    EXPECT_EQ(found(outward, members), (Rows{{11, 2, 3}, {12, 1, 2}, {12, 1, 3}, {15, 1, 2}, {15, 1, 3}}));
    EXPECT_EQ(found(inward, members), (Rows{{11, 2, 1}, {14, 3, 1}, {14, 3, 2}}));
    // More matches than rows and edges: look-ups of the seed's rows, in parts.
    EXPECT_EQ(found(outward, {{11, 1}, {12, 1}, {13, 9}}), (Rows{{11, 1, 2}, {11, 1, 3}, {12, 1, 2}, {12, 1, 3}}));
    exec::IndexedSeed::from = usual;
}

TEST_F(Scan, follows_a_bound_predicate) {
    Table seed = seed_table({0, 1}, {{1, 10}, {1, 11}, {3, 11}, {3, 99}});
    EXPECT_EQ(run(n.plan(3, n.scan(n.seed(), var(0), var(1), var(2)), ids({0, 1})), seed),
              (Rows{{1, 10, 2}, {1, 10, 3}, {1, 11, 2}, {3, 11, 1}, {3, 11, 3}}));
}

TEST_F(Scan, matches_one_variable_in_two_positions) {
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), id(11), var(0)))), (Rows{{3}}));
    graph.add(12, 12, 5);
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), var(0), var(1)))), (Rows{{12, 5}}));
}

TEST_F(Scan, matches_a_triple_of_two_parts_once) {
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), id(10), var(1), both))), (Rows{{1, 2}, {1, 3}, {2, 3}, {7, 8}}));
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), id(1), id(10), var(1), both))), (Rows{{2}, {3}}));
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), id(1), var(0), var(1), both))), (Rows{{10, 2}, {10, 3}, {11, 2}}));
}

TEST_F(Scan, merges_a_window_with_the_stored_graph) {
    windows.emplace_back(labels);
    windows[0].add(1, 10, 2);
    windows[0].add(1, 10, 9);
    Spec parts = List{stored({0}), Dict{{"src", 1}}};
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), id(1), id(10), var(0), parts))), (Rows{{2}, {3}, {9}}));
}

TEST_F(Scan, binds_the_graph_of_each_match) {
    EXPECT_EQ(run(n.plan(3, n.scan_graph(n.seed(), var(0), id(10), var(1), 2, named))),
              (Rows{{1, 2, 100}, {7, 8, 100}, {7, 8, 101}}));
    EXPECT_EQ(run(n.plan(3, n.scan_graph(n.seed(), id(7), var(0), var(1), 2, named))),
              (Rows{{10, 8, 100}, {10, 8, 101}}));
}

TEST_F(Scan, tests_a_bound_graph) {
    Table seed = seed_table({0, 1}, {{7, 101}, {1, 101}, {1, 100}, {1, 55}});
    EXPECT_EQ(run(n.plan(3, n.scan_graph(n.seed(), var(0), id(10), var(2), 1, named), ids({0, 1})), seed),
              (Rows{{1, 100, 2}, {7, 101, 8}}));
}

TEST_F(Scan, keeps_duplicate_rows_of_its_input) {
    Table seed = seed_table({0}, {{1}, {1}, {2}, {1}});
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), id(10), var(1)), ids({0})), seed),
              (Rows{{1, 2}, {1, 2}, {1, 2}, {1, 3}, {1, 3}, {1, 3}, {2, 3}}));
}

TEST_F(Scan, finds_its_way_among_many_graphs) {
    for (TermId g = 200; g < 260; ++g) {
        graph.add(g, 10, 1, g);
        graph.add(5, 10, 6, g);
        graph.add(5, 11, 7, g);
    }
    Table seed = seed_table({0}, {{205}, {5}, {206}});
    Rows found = run(n.plan(3, n.scan_graph(n.seed(), var(0), id(10), var(1), 2, named), ids({0})), seed);
    ASSERT_EQ(found.size(), 62u);
    EXPECT_EQ(found[0], (std::vector<TermId>{5, 6, 200}));
    EXPECT_EQ(found[60], (std::vector<TermId>{205, 1, 205}));
    EXPECT_EQ(run(n.plan(3, n.scan(n.seed(), var(0), id(10), var(1), named), ids({0})), seed),
              (Rows{{5, 6}, {205, 1}, {206, 1}}));
    EXPECT_EQ(run(n.plan(2, n.scan_graph(n.seed(), id(205), id(10), id(1), 1, named))), (Rows{{205}}));
    EXPECT_EQ(run(n.plan(3, n.scan_graph(n.seed(), var(0), id(10), id(6), 1, named), ids({0})), seed).size(), 60u);
}

TEST_F(Scan, names_the_graphs_that_have_a_triple_at_the_snapshot_of_the_view) {
    Store store("", 1, std::size_t{1} << 30);
    const std::vector<Edge> first{{1, store.labels().intern(100, 10), 2}},
        second{{1, store.labels().intern(101, 10), 2}};
    const auto names = [&](const Source& view) {
        const Plan plan(n.plan(1, n.node("graphs", {{"in", n.seed()}, {"graph", 0}, {"dataset", named}})));
        LocalTerms terms(dictionary);
        Budget budget(30.0, 0);
        ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
        const Table seed = unit();
        const std::vector<const Source*> sources{&view};
        RunInput input{&seed, sources, &store.labels(), &context, nullptr};
        Rows rows = rows_of(*plan.run(input));
        std::sort(rows.begin(), rows.end());
        return rows;
    };
    store.commit(first, {1, 1});
    store.commit(second, {2, 1});
    const StreamBound bound{1, 0};
    const auto before = store.view(), without_first = store.view({&bound, 1});
    store.change(second, {}, {});
    EXPECT_EQ(names(*store.view()), (Rows{{100}}));
    EXPECT_EQ(names(*before), (Rows{{100}, {101}}));
    EXPECT_EQ(names(*without_first), (Rows{{101}}));
    store.change(first, {}, {1, 2});
    EXPECT_EQ(names(*store.view()), (Rows{}));
    const StreamBound later{1, 1};
    EXPECT_EQ(names(*store.view({&later, 1})), (Rows{{100}}));
    EXPECT_EQ(names(*without_first), (Rows{{101}}));
}

/// Alternative predicates: each with whether it is inverse.
Spec any_of(std::initializer_list<std::pair<TermId, bool>> predicates) {
    List any;
    for (auto [predicate, inverse] : predicates) any.push_back(Dict{{"id", predicate}, {"inverse", inverse}});
    return Dict{{"any", any}};
}

TEST_F(Scan, matches_an_edge_of_alternative_predicates_once) {
    const Spec p = any_of({{10, false}, {11, false}});
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), p, var(1)))), (Rows{{1, 2}, {1, 3}, {2, 3}, {3, 1}, {3, 3}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), id(1), p, var(0)))), (Rows{{2}, {3}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), p, id(2)))), (Rows{{1}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), p, var(0)))), (Rows{{3}}));
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), p, var(1), both))),
              (Rows{{1, 2}, {1, 3}, {2, 3}, {3, 1}, {3, 3}, {7, 8}}));
}

TEST_F(Scan, matches_inverse_predicates_from_object_to_subject) {
    const Spec p = any_of({{10, false}, {11, true}});
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), p, var(1)))), (Rows{{1, 2}, {1, 3}, {2, 1}, {2, 3}, {3, 3}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), id(2), p, var(0)))), (Rows{{1}, {3}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), p, id(3)))), (Rows{{1}, {2}, {3}}));
    const Table seed = seed_table({0, 1}, {{1, 3}, {2, 1}, {3, 1}, {3, 3}});
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), p, var(1)), ids({0, 1})), seed), (Rows{{1, 3}, {2, 1}, {3, 3}}));
}

TEST_F(Scan, has_no_match_by_an_inverse_predicate_whose_subject_is_a_literal) {
    const TermId literal = make_id(Tag::Integer, 5);
    graph.add(4, 12, literal);
    graph.add(4, 12, 6);
    const Spec p = any_of({{13, false}, {12, true}});
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), p, var(1)))), (Rows{{6, 4}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), p, id(4)))), (Rows{{6}}));
    const Table seed = seed_table({0, 1}, {{literal, 4}, {6, 4}});
    EXPECT_EQ(run(n.plan(3, n.scan(n.seed(), var(0), p, var(2)), ids({0, 1})), seed), (Rows{{6, 4, 4}}));
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), p, var(1)), ids({0, 1})), seed), (Rows{{6, 4}}));
    EXPECT_EQ(run(n.plan(2, n.scan(n.seed(), var(0), any_of({{12, true}}), var(1)), ids({0, 1})), seed),
              (Rows{{6, 4}}));
}

TEST_F(Scan, merges_long_lists_of_alternative_predicates) {
    std::set<std::vector<TermId>> all;
    for (TermId i = 0; i < 500; ++i) {
        graph.add(9, 14, 1000 + i % 300);
        graph.add(9, 15, 1000 + i * 7 % 400);
        all.insert({1000 + i % 300});
        all.insert({1000 + i * 7 % 400});
    }
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), id(9), any_of({{14, false}, {15, false}}), var(0)))),
              Rows(all.begin(), all.end()));
}

TEST_F(Scan, refuses_alternative_predicates_that_are_variables_or_have_a_graph_variable) {
    const Spec p = any_of({{10, false}, {11, false}});
    EXPECT_THROW(run(n.plan(3, n.scan_graph(n.seed(), var(0), p, var(1), 2, named))), Error);
    EXPECT_THROW(run(n.plan(3, n.scan(n.seed(), var(0), Dict{{"any", List{}}}, var(1)))), Error);
    EXPECT_THROW(run(n.plan(3, n.scan(n.seed(), var(0), Dict{{"any", List{var(2)}}}, var(1)))), Error);
}

Spec any_term(Spec values = List{}) { return Dict{{"any", values}}; }

TEST_F(Scan, outputs_a_row_once_if_it_has_a_match_with_any_end) {
    const Table seed = seed_table({0}, {{1}, {2}, {1}, {4}});
    const auto rows = [&](Spec s, TermId p, Spec o) {
        return run(n.plan(1, n.scan(n.seed(), s, id(p), o), ids({0})), seed);
    };
    EXPECT_EQ(rows(var(0), 10, any_term()), (Rows{{1}, {1}, {2}}));
    EXPECT_EQ(rows(any_term(), 11, var(0)), (Rows{{1}, {1}, {2}}));
    EXPECT_EQ(rows(var(0), 10, any_term(ids({2, 9}))), (Rows{{1}, {1}}));
    EXPECT_EQ(rows(id(2), 10, any_term()), (Rows{{1}, {1}, {2}, {4}}));
    EXPECT_EQ(rows(id(2), 10, any_term(ids({2}))), (Rows{}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), id(10), any_term(), both))), (Rows{{1}, {2}, {7}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), any_term(), id(10), var(0), both))), (Rows{{2}, {3}, {8}}));
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), any_term(), var(0), id(3)))), (Rows{{10}, {11}}));
}

TEST_F(Scan, tests_many_rows_against_the_vertices_of_a_label_with_few_edges) {
    Rows seeds, expected;
    for (TermId i = 0; i < 3000; ++i) {
        seeds.push_back({1 + i % 500});
        if (seeds.back()[0] <= 2) expected.push_back(seeds.back());
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), id(10), any_term()), ids({0})), seed_table({0}, seeds)), expected);
    EXPECT_EQ(run(n.plan(1, n.scan(n.seed(), var(0), id(77), any_term()), ids({0})), seed_table({0}, seeds)), Rows{});
}

TEST_F(Scan, refuses_any_ends_that_have_no_meaning) {
    EXPECT_THROW(run(n.plan(1, n.scan(n.seed(), any_term(), id(10), any_term()))), Error);
    EXPECT_THROW(run(n.plan(1, n.scan(n.seed(), var(0), id(10), any_term(ids({2}))))), Error);
    EXPECT_THROW(run(n.plan(1, n.scan(n.seed(), var(0), any_of({{10, false}}), any_term()))), Error);
}

TEST_F(Scan, refuses_an_unbound_cell_where_the_plan_promises_a_bound_one) {
    Spec values = n.node("values", {{"slots", ids({0})}, {"rows", List{ids({0})}}});
    EXPECT_THROW(run(n.plan(2, n.scan(values, var(0), id(10), var(1)))), Error);
}

TEST_F(Scan, ends_a_product_that_exceeds_the_memory_limit) {
    memory_limit = 1 << 20;
    for (TermId i = 0; i < 300; ++i) graph.add(1000 + i, 20, 2000 + i);
    Spec root = n.seed();
    for (std::uint64_t k = 0; k < 10; ++k) root = n.scan(root, var(2 * k), id(20), var(2 * k + 1));
    EXPECT_THROW(run(n.plan(20, root)), LimitError);
}

}  // namespace
}  // namespace penstock::test
