"""EXPLAIN: rows of the last run, times of the last timed one, and estimates by current counts."""

from __future__ import annotations

import re

import penstock
from support.bench import nt


def actual(plan: str, operator: str) -> list[int]:
    return [int(n) for n in re.findall(rf"{operator}.*actual (\d+) rows", plan)]


def estimates(plan: str, operator: str) -> list[str]:
    return re.findall(rf"{operator}.*est\. (\S+) rows", plan)


def test_explain_shows_the_last_run(bench):
    bench.declare("s", timing="all")
    query = bench.register("?s ?p ?o FILTER(?s != :none)", "s RANGE 100ms")
    bench.advance("s", 0)
    for k in range(1, 6):
        bench.push("s", 100 * k, *(f"s{i} p o" for i in range(k)))
        bench.advance("s", 100 * k)
        for asked in (query, query.text):
            plan = bench.engine.explain(asked)
            assert re.search(rf"last run at {100 * k}[\n;]", plan)
            assert actual(plan, "scan") == [k]
    bench.advance("s", 600)
    assert actual(bench.engine.explain(query), "scan") == [0]


def test_explain_shows_the_rows_of_a_last_run_whose_result_was_reused(bench):
    bench.declare("s", timing="all")
    query = bench.register(":a :p ?o", "s RANGE 1s STEP 100ms")
    bench.advance("s", 0)
    bench.push("s", 50, "a p b", "a p c")
    for k in range(1, 8):
        bench.push("s", 100 * k, f"s{k} q o")
        bench.advance("s", 100 * k)
    plan = bench.engine.explain(query)
    assert "last run at 700; no operator ran" in plan
    assert actual(plan, "scan") == [2]


def test_the_run_after_an_explain_is_timed(bench):
    bench.declare("s", timing="all")
    query = bench.register(":a :p ?o", "s RANGE 1s STEP 100ms")
    bench.advance("s", 0)
    bench.push("s", 50, "a p b")
    for k in range(1, 8):
        bench.advance("s", 100 * k)
    assert "times are of the run at 100\n" in bench.engine.explain(query)
    bench.advance("s", 800)
    plan = bench.engine.explain(query)
    assert "last run at 800\n" in plan
    assert "µs" in plan


def test_explain_shows_the_last_run_of_the_query_itself(bench):
    bench.declare("s", timing="all")
    bench.advance("s", 0)
    first = bench.register("?s :p ?o", "s RANGE 10s STEP 100ms")
    bench.push("s", 100, "a p b")
    bench.advance("s", 100)
    second = bench.register("?s :p ?o", "s RANGE 10s STEP 100ms")
    assert "actual" not in bench.engine.explain(second)
    bench.push("s", 200, "c p d")
    bench.advance("s", 200)
    assert actual(bench.engine.explain(first), "scan") == [2]
    assert actual(bench.engine.explain(second), "scan") == [1]


def test_explain_estimates_from_current_counts(bench):
    bench.declare("s", timing="all")
    query = bench.register("?s :p ?o", "s RANGE 1s STEP 100ms")
    bench.advance("s", 0)
    for k in range(1, 4):
        bench.push("s", 100 * k, *(f"s{k}x{i} p o" for i in range(10)))
        bench.advance("s", 100 * k)
        plan = bench.engine.explain(query)
        assert (estimates(plan, "scan"), actual(plan, "scan")) == ([str(10 * k)], [10 * k])
    assert estimates(bench.engine.explain(query.text), "scan") == ["30"]


def test_explain_draws_the_last_run_by_its_own_plan_where_counts_ask_for_another(bench):
    bench.declare("s", timing="all")
    query = bench.register("?a :p ?b . ?b :q ?c", "s RANGE 10s STEP 100ms")
    bench.advance("s", 0)
    bench.push("s", 50, "a0 p b0", *(f"b{i} q c" for i in range(100)))
    for k in range(1, 6):
        bench.advance("s", 100 * k)
    bench.push("s", 550, *(f"a{i} p x{i}" for i in range(1, 2000)))
    bench.advance("s", 600)  # not an evaluation before which the engine looks at the counts
    ran, now = bench.engine.explain(query).split("plan by current counts")
    assert re.search(r"last run at 600[\n;]", ran)
    assert "plan of the last run" in ran
    assert actual(ran, "scan .*<urn:p>") == [2000]
    assert "actual" not in now
    assert "scan" in now


def test_explain_says_that_the_last_run_failed(bench):
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.advance("s", 0)
    bench.advance("s", 100)
    assert "actual" in bench.engine.explain(query)
    bench.engine._runtime.core.limits = penstock.Limits(evaluation_timeout_s=1e-9)
    bench.advance("s", 200)
    bench.engine._runtime.core.limits = penstock.Limits()
    plan = bench.engine.explain(query)
    assert "last run at 200; failed for 1 of the queries" in plan
    assert "actual" not in plan


def test_explain_of_a_one_shot_text_shows_its_last_run_and_current_counts(bench):
    asked = "SELECT * WHERE { ?s <urn:p> ?o }"
    for k in range(1, 4):
        bench.engine.load(nt(*(f"s{k}x{i} p o" for i in range(10))).encode(), format="nt")
        bench.engine.query(asked)
        plan = bench.engine.explain(asked)
        assert (estimates(plan, "scan"), actual(plan, "scan")) == ([str(10 * k)], [10 * k])
    bench.engine.load(nt("t p o").encode(), format="nt")
    plan = bench.engine.explain(asked)
    assert (estimates(plan, "scan"), actual(plan, "scan")) == (["31"], [30])


def test_explain_of_a_repeated_one_shot_text_shows_rows_and_times_of_its_operators(bench):
    asked = "SELECT * WHERE { <urn:s> <urn:p> ?o }"
    bench.engine.load(nt("s p o1", "s p o2").encode(), format="nt")
    for _ in range(40):
        assert len(bench.engine.query(asked)) == 2
        plan = bench.engine.explain(asked)
        assert actual(plan, "scan") == [2]
        assert " µs" in plan
    bench.engine.load(nt("s p o3").encode(), format="nt")
    assert len(bench.engine.query(asked)) == 3
    assert actual(bench.engine.explain(asked), "scan") == [3]


def test_a_pattern_with_a_variable_predicate_is_estimated_by_the_triples_of_its_graphs(bench):
    everywhere = "SELECT * { ?s ?p ?o }", "SELECT * { GRAPH ?g { ?s ?p ?o } }", "SELECT * { ?s ?p ?o . ?o ?q ?z }"
    for text in everywhere:
        assert set(estimates(bench.engine.explain(text), "scan")) == {"0"}
    stored = [f"s{i} p{i % 3} o" for i in range(30)] + [f"s{i} q o" for i in range(12)]
    named = [f"s{i} p o g{i % 2}" for i in range(8)]
    bench.engine.load(nt(*stored, *named).encode(), format="nquads")
    assert estimates(bench.engine.explain(everywhere[0]), "scan") == ["42"]
    assert estimates(bench.engine.explain(everywhere[1]), "scan") == ["8"]
    assert estimates(bench.engine.explain("SELECT * { GRAPH <urn:g1> { ?s ?p ?o } }"), "scan") == ["4"]
    assert estimates(bench.engine.explain(everywhere[2]), "scan") == ["336", "42"]


def test_of_many_predicates_the_first_ones_stand_for_the_others(bench):
    bench.engine.load(nt(*(f"s{i} p{i % 200} o" for i in range(600))).encode(), format="nquads")
    assert estimates(bench.engine.explain("SELECT * { ?s ?p ?o }"), "scan") == ["600"]
