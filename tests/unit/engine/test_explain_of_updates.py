"""EXPLAIN and statistics of operators that update their state from changes (ADR 78, ADR 81)."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import penstock
from penstock.core import _native as native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bench import Bench

NEVER = (1 << 64) - 1
COUNTS = {"select": "SELECT ?s (COUNT(*) AS ?n)", "after": "GROUP BY ?s"}


@pytest.fixture(autouse=True)
def _always() -> Iterator[None]:
    usual = native.maintain_from(0)
    yield
    native.maintain_from(usual)


def figures(plan: str, operator: str) -> str:
    """Return what EXPLAIN says of the operator's last evaluation."""
    found = re.search(rf"^ *{operator}.*; (.*)\)$", plan, re.MULTILINE)
    assert found is not None, plan
    return found[1]


def steps(bench: Bench, until: int, each: int = 1, first: int = 0) -> None:
    for k in range(first, until):
        bench.push("s", 100 * k + 50, *(f"s{k} p o{i}" for i in range(each)))
        bench.advance("s", 100 * k + 100)


def test_group_by_is_evaluated_completely_first_and_then_updated(bench):
    bench.declare("s", timing="all")
    query = bench.register("?s :p ?o", "s RANGE 10s STEP 100ms", **COUNTS)
    bench.advance("s", 0)
    bench.advance("s", 100)
    first = figures(bench.engine.explain(query), "group")
    assert re.fullmatch(r"evaluated completely: no state of an earlier run(, state \d+ bytes)?", first)
    bench.push("s", 150, "a p b", "a p c", "d p e")
    bench.advance("s", 200)
    assert re.fullmatch(r"updated from 3 changed rows, state \d+ bytes", figures(bench.engine.explain(query), "group"))


def test_distinct_is_updated(bench):
    bench.declare("s", timing="all")
    query = bench.register("?s ?p ?o FILTER (?o != :x)", "s RANGE 300ms STEP 100ms", select="SELECT DISTINCT ?s")
    bench.advance("s", 0)
    steps(bench, 6, each=2)
    # In a window of three steps, each step adds two rows and removes two.
    assert re.fullmatch(
        r"updated from 4 changed rows, state \d+ bytes", figures(bench.engine.explain(query), "distinct")
    )


def test_the_first_rows_of_an_order_are_updated(bench):
    bench.declare("s", timing="all")
    query = bench.register(
        "?s ?p ?o", "s RANGE 300ms STEP 100ms", select="SELECT ?s", after="ORDER BY ?s LIMIT 3 OFFSET 1"
    )
    bench.advance("s", 0)
    steps(bench, 6, each=2)
    plan = bench.engine.explain(query)
    assert re.search(r"order.*1 keys, first 4 rows", plan)
    assert re.fullmatch(r"updated from 4 changed rows, state \d+ bytes", figures(plan, "order"))


def test_an_order_without_limit_is_updated(bench):
    bench.declare("s", timing="all")
    query = bench.register("?s ?p ?o", "s RANGE 300ms STEP 100ms", select="SELECT ?s", after="ORDER BY ?s")
    bench.advance("s", 0)
    steps(bench, 6)
    assert figures(bench.engine.explain(query), "order").startswith("updated from 2 changed rows")
    for evaluation in query.poll():
        names = [str(row["s"]) for row in evaluation.answer]
        assert names == sorted(names)


def test_an_order_by_long_computed_terms_is_evaluated_completely(bench):
    """Their ids are valid in one run only."""
    bench.declare("s", timing="all")
    key = "CONCAT('a long computed term ', STR(?s))"
    query = bench.register("?s ?p ?o", "s RANGE 300ms STEP 100ms", select="SELECT ?s", after=f"ORDER BY {key} LIMIT 3")
    bench.advance("s", 0)
    steps(bench, 2)
    assert "terms that are valid in one run only" in figures(bench.engine.explain(query), "order")
    steps(bench, 20, first=2)
    assert [len(e.answer) for e in query.poll()][-15:] == [3] * 15


def test_explain_says_why_an_operator_was_not_updated(bench):
    bench.declare("s", timing="all")
    unsupported = bench.register("?s :p ?o . ?s :q+ ?x", "s RANGE 10s STEP 100ms", **COUNTS)
    chance = bench.register("?s :p ?o BIND (RAND() AS ?x)", "s RANGE 10s STEP 100ms", **COUNTS)
    large = bench.register("?s :p ?o", "s RANGE 100ms STEP 100ms", **COUNTS)
    native.maintain_from(1000)
    bench.advance("s", 0)
    steps(bench, 2)
    assert figures(bench.engine.explain(large), "group") == "evaluated completely: the input is small"
    native.maintain_from(1)
    steps(bench, 4, first=2)
    for query in (unsupported, chance):
        plan = bench.engine.explain(query)
        assert figures(plan, "group") == "evaluated completely: the query or its sources do not support updates"
    assert figures(bench.engine.explain(large), "group").startswith("evaluated completely: the change is too large")


@pytest.mark.parametrize("form", ["ISTREAM", "DSTREAM"])
def test_explain_says_whether_a_stream_operator_read_changes(bench, form):
    bench.declare("s", timing="all")
    text = f"REGISTER {form} q AS SELECT ?s ?o FROM STREAM <urn:s> [RANGE 200ms STEP 100ms] WHERE {{ ?s <urn:p> ?o }}"
    query = bench.engine.register(text)
    steps(bench, 1)
    assert f"  {form} from complete answers: no state of an earlier run\n" in bench.engine.explain(query)
    steps(bench, 6, each=3, first=1)
    assert f"  {form} from 6 changed rows\n" in bench.engine.explain(query)


def test_stats_count_updated_and_complete_evaluations_and_the_bytes_of_the_state(bench, make_bench):
    bench.declare("s", timing="all")
    query = bench.register("?s :p ?o", "s RANGE 10s STEP 100ms", **COUNTS)
    bench.advance("s", 0)
    steps(bench, 5)
    stats = bench.engine.stats()
    assert (stats["updated_evaluations"], stats["complete_evaluations"]) == (4, 1)
    assert f"state {stats['state_bytes']} bytes" in bench.engine.explain(query)
    other = make_bench().engine.stats()
    assert (other["updated_evaluations"], other["complete_evaluations"], other["state_bytes"]) == (0, 0, 0)
    query.stop()
    assert bench.engine.stats()["state_bytes"] == 0


BEYOND_BUDGET = (
    ("?s :p ?o", COUNTS, "group"),
    ("?s :p ?o", {"select": "SELECT (COUNT(DISTINCT ?s) AS ?n) (MAX(?s) AS ?m)"}, "group"),
    ("?s ?p ?o FILTER (?o != :x)", {"select": "SELECT DISTINCT ?s ?o"}, "distinct"),
    ("?s :p ?o", {"select": "SELECT (COUNT(DISTINCT *) AS ?n)"}, "group"),
    ("?s :p ?o", {"select": "SELECT ?s ?o", "after": "ORDER BY DESC(?o) ?s LIMIT 5 OFFSET 2"}, "order"),
    ("?s :p ?o", {"select": "SELECT ?s ?o", "after": "ORDER BY ?o DESC(?s)"}, "order"),
)


def test_a_state_that_outgrows_the_budget_is_dropped_and_rebuilt_with_equal_answers(make_bench):
    limits = penstock.Limits(evaluation_memory_mb=1)
    updated, fresh = engines = make_bench(limits=limits), make_bench(limits=limits)
    queries = {}
    for bench in engines:
        bench.declare("s", timing="all")
        queries[bench] = [bench.register(body, "s RANGE 800ms STEP 100ms", **more) for body, more, _ in BEYOND_BUDGET]
        bench.advance("s", 0)
    said: list[list[str]] = [[] for _ in BEYOND_BUDGET]
    for k in range(20):
        triples = [f"s{k}x{i} p o{i % 7}" for i in range(900 if k < 8 else 100)]
        answers = []
        for bench in engines:
            native.maintain_from(NEVER if bench is fresh else 0)
            bench.push("s", 100 * k + 50, *triples)
            bench.advance("s", 100 * k + 100)
            polled = [e for query in queries[bench] for e in query.poll()]
            assert [e.error for e in polled] == [None] * len(polled)
            answers.append([(e.time, Counter(map(str, e.answer))) for e in polled])
        assert answers[0] == answers[1]
        for i, (_, _, operator) in enumerate(BEYOND_BUDGET):
            said[i].append(figures(updated.engine.explain(queries[updated][i]), operator))
    for each in said:
        last = max(k for k, words in enumerate(each) if "too large for the memory limit" in words)
        assert any(words.startswith("updated") for words in each[:last])
        assert any(words.startswith("updated") for words in each[last:])


def test_having_tests_only_changed_groups(bench):
    bench.declare("s", timing="all")
    query = bench.register(
        "?s ?p ?o",
        "s RANGE 1s STEP 100ms",
        select="SELECT ?s (COUNT(*) AS ?n)",
        after="GROUP BY ?s HAVING (COUNT(*) > 1)",
    )
    bench.advance("s", 0)
    for k in range(40):
        bench.push("s", 100 * k + 50, f"a p o{k}", f"s{k} p o{k}", f"s{k} p x")
        bench.advance("s", 100 * k + 100)
    counts = [{str(row["s"])[-3:]: row["n"].value for row in e.answer} for e in query.poll()]
    assert len(counts[-1]) == 11
    assert sorted(counts[-1].values()) == [2] * 10 + [10]
    # Changed groups: that of `a`, a new one and one that is empty now. Each has its previous and its present row.
    plan = bench.engine.explain(query)
    assert re.fullmatch(r"updated from 4 changed rows, state \d+ bytes", figures(plan, "filter")), plan
