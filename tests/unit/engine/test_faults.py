"""A standing query over its budget fails in its own evaluation, and only there."""

from __future__ import annotations

import pytest

import penstock
from penstock import LimitError
from support.bench import rows


def test_only_the_guilty_member_of_a_group_errs(make_bench):
    bench = make_bench(limits=penstock.Limits(evaluation_memory_mb=8))
    bench.declare("s", timing="all")
    window = "s RANGE 100ms"
    body = ":{} :p ?a . ?a :q ?b . ?a :q ?c . ?a :q ?d"
    queries = [bench.register(body.format(f"u{i}"), window) for i in range(9)]
    triples = (
        [f"u{i} p hub{i}" for i in range(9)] + [f"hub{i} q x" for i in range(9)] + [f"hub4 q x{k}" for k in range(150)]
    )
    bench.push("s", 50, *triples)
    bench.advance("s", 200)
    first, second = zip(*(query.poll() for query in queries), strict=True)
    assert [type(e.error) for e in first] == [type(None)] * 4 + [LimitError] + [type(None)] * 4
    assert [rows(e.answer) for i, e in enumerate(first) if i != 4] == [
        [(f"hub{i}", "x", "x", "x")] for i in range(9) if i != 4
    ]
    with pytest.raises(LimitError, match="memory"):
        first[4].answer  # noqa: B018
    assert all(e.error is None and rows(e.answer) == [] for e in second)


def test_a_difference_over_a_failed_instant_is_to_the_last_good_answer(make_bench):
    bench = make_bench(limits=penstock.Limits(evaluation_memory_mb=1))
    bench.declare("s", timing="all")
    query = bench.register(
        "?x :p ?a . ?y :p ?b . ?z :p ?c", "s RANGE 100ms", select="SELECT ?a ?b ?c", header="REGISTER ISTREAM q AS"
    )
    bench.push("s", 50, "u p one")
    bench.push("s", 150, *(f"u{k} p v{k}" for k in range(80)))
    bench.push("s", 250, "u p one", "w p two")
    bench.advance("s", 300)
    first, second, third = query.poll()
    assert rows(first.answer) == [("one", "one", "one")]
    assert isinstance(second.error, LimitError)
    assert len(third.answer) == 7


def test_an_unexpected_error_is_that_evaluations_error(bench, monkeypatch, caplog):
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.advance("s", 0)
    with monkeypatch.context() as patch:
        patch.setattr("penstock.engine.standing.execution.native.execute", lambda *_, **__: 1 / 0)
        bench.advance("s", 100)
    bench.advance("s", 200)
    first, second = query.poll()
    assert "ZeroDivisionError" in str(first.error)
    assert "ZeroDivisionError" in caplog.text
    assert second.error is None


def test_functions_that_python_serves_work_in_standing_queries(bench):
    bench.declare("s")
    query = bench.register(
        '?s :p ?o FILTER(REGEX(STR(?o), "^urn:[ab]$")) BIND(MD5(STR(?o)) AS ?h)', "s RANGE 100ms", select="SELECT ?o ?h"
    )
    bench.push("s", 50, "s p a", "s p c")
    bench.advance("s", 100)
    ((name, digest),) = rows(query.poll()[0].answer)
    assert name == "a"
    assert len(digest) == 32
