"""Answers of patterns that share nothing are all pairs of their rows, and kept as the patterns' own rows until then."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product

import numpy as np
import pytest

import penstock
from penstock import LimitError

BOTH = "?a :left ?x . ?b :right ?y"


def fill(bench, left, right, time=50):
    bench.push("s", time, *(f"a{i} left x{i % 3}" for i in range(left)), *(f"b{i} right y{i}" for i in range(right)))
    bench.advance("s", 100)


def factorized(evaluation):
    """Whether the answer is kept as factors."""
    return evaluation._block.product is not None


def name(term):
    return str(term).rpartition("/")[2].rpartition(":")[2].rpartition("#")[2]


def one(query):
    (evaluation,) = query.poll()
    return evaluation


@pytest.fixture
def query(bench):
    bench.declare("s")
    return bench.register(BOTH, "s RANGE 100ms", select="SELECT ?y ?a ?x ?b")


def expected(left, right):
    return Counter((f"y{j}", f"a{i}", f"x{i % 3}", f"b{j}") for i, j in product(range(left), range(right)))


def test_every_reading_of_an_answer_gives_all_pairs(bench, query):
    fill(bench, 5, 4)
    evaluation = one(query)
    answer = evaluation.answer
    assert factorized(evaluation)
    assert len(answer) == 20
    assert Counter(tuple(name(row[v]) for v in ("y", "a", "x", "b")) for row in answer) == expected(5, 4)
    ids = [[name(term) for term in bench.engine.decode(answer.ids[v])] for v in ("y", "a", "x", "b")]
    assert Counter(zip(*ids, strict=True)) == expected(5, 4)
    arrow = answer.to_arrow().to_pylist()
    assert Counter(tuple(name(row[v]["value"]) for v in ("y", "a", "x", "b")) for row in arrow) == expected(5, 4)
    bindings = json.loads(answer.to_json())["results"]["bindings"]
    assert Counter(tuple(name(row[v]["value"]) for v in ("y", "a", "x", "b")) for row in bindings) == expected(5, 4)


def test_many_rows_are_counted_without_being_made(bench, query):
    fill(bench, 3000, 2000)
    answer = one(query).answer
    assert len(answer) == 6_000_000
    assert sum(len(column) for column in answer._held) == 2 * 5000
    assert len(next(iter(answer))) == 4


@pytest.mark.parametrize(("left", "right"), [(0, 3), (3, 0), (0, 0)])
def test_a_side_without_rows_leaves_none(bench, query, left, right):
    fill(bench, left, right)
    answer = one(query).answer
    assert len(answer) == 0
    assert list(answer) == []
    assert [len(column) for column in answer.ids.values()] == [0, 0, 0, 0]


def test_a_side_of_which_nothing_is_shown_counts_its_rows(bench):
    bench.declare("s")
    query = bench.register(BOTH, "s RANGE 100ms", select="SELECT ?x")
    fill(bench, 4, 3)
    evaluation = one(query)
    assert factorized(evaluation)
    assert Counter(name(row["x"]) for row in evaluation.answer) == {"x0": 6, "x1": 3, "x2": 3}


def test_three_sides_make_triples_of_rows(bench):
    bench.declare("s")
    query = bench.register("?a :left ?x . ?b :right ?y . ?c :left ?z", "s RANGE 100ms", select="SELECT ?c ?b ?a")
    fill(bench, 3, 2)
    evaluation = one(query)
    assert len(evaluation._block.product.parts) == 3
    found = Counter((name(row["a"]), name(row["b"]), name(row["c"])) for row in evaluation.answer)
    assert found == Counter((f"a{i}", f"b{j}", f"a{k}") for i, j, k in product(range(3), range(2), range(3)))


def test_each_member_of_a_group_has_its_own_pairs(bench):
    bench.declare("s")
    queries = [bench.register(f":a{i} :left ?x . ?b :right ?y", "s RANGE 100ms") for i in range(4)]
    fill(bench, 3, 4)
    evaluations = [one(query) for query in queries]
    assert len({id(evaluation._block) for evaluation in evaluations}) == 1
    assert factorized(evaluations[0])
    for i, evaluation in enumerate(evaluations):
        rows = {(name(row["x"]), name(row["y"])) for row in evaluation.answer}
        assert rows == ({(f"x{i}", f"y{j}") for j in range(4)} if i < 3 else set())


def test_computed_terms_are_those_of_their_side(bench):
    bench.declare("s")
    body = (
        '?a :left ?x BIND(CONCAT("from the left: ", STR(?x)) AS ?l) { ?b :right ?y BIND(CONCAT("no ", STR(?y)) AS ?r) }'
    )
    query = bench.register(body, "s RANGE 100ms", select="SELECT ?l ?r")
    fill(bench, 2, 2)
    rows = {(str(row["l"])[:13], name(row["l"]), str(row["r"])[:3], name(row["r"])) for row in one(query).answer}
    assert rows == {("from the left", f"x{i}", "no ", f"y{j}") for i, j in product(range(2), range(2))}


@pytest.mark.parametrize(
    ("select", "body", "header"),
    [
        ("SELECT DISTINCT ?x ?y", BOTH, ""),
        ("SELECT ?x ?y", f"{BOTH} FILTER(STR(?x) < STR(?y))", ""),
        ("SELECT (COUNT(*) AS ?n)", BOTH, ""),
        ("SELECT ?x ?y", BOTH, "REGISTER ISTREAM q AS"),
        ("SELECT ?x ?y", "?a :left ?x . ?a :right ?y", ""),
    ],
)
def test_what_asks_for_more_than_pairs_is_made_at_once(bench, select, body, header):
    bench.declare("s")
    query = bench.register(body, "s RANGE 100ms", select=select, header=header)
    fill(bench, 2, 2)
    assert not factorized(one(query))


def test_an_answer_counts_against_the_memory_limit_as_the_rows_that_it_stands_for(make_bench):
    bench = make_bench(limits=penstock.Limits(evaluation_memory_mb=1))
    bench.declare("s")
    guilty, other = (bench.register(f"?a {p} ?x . ?b {p} ?y", "s RANGE 100ms") for p in (":left", ":right"))
    fill(bench, 400, 3)
    assert isinstance(one(guilty).error, LimitError)
    assert len(one(other).answer) == 9


def test_only_the_guilty_member_errs(make_bench):
    bench = make_bench(limits=penstock.Limits(evaluation_memory_mb=1))
    bench.declare("s")
    queries = [bench.register(f"?a :left :x{i} . ?b :left :x{i}", "s RANGE 100ms") for i in range(4)]
    bench.push("s", 50, *(f"a{i} left x2" for i in range(400)), "a0 left x0", "a1 left x0")
    bench.advance("s", 100)
    evaluations = [one(query) for query in queries]
    assert [type(e.error) for e in evaluations] == [type(None), type(None), LimitError, type(None)]
    assert [len(e.answer) for e in (evaluations[0], evaluations[1], evaluations[3])] == [4, 0, 0]


def test_an_answer_without_rows_can_be_read_when_what_one_factor_had_is_forgotten(bench):
    bench.declare("s", timing="all")
    query = bench.register(BOTH, "s RANGE 100ms", select="SELECT ?y ?a ?x ?b")
    for batch in range(200):
        bench.push("s", 100 * batch + 50, f"a{batch} left x{batch}")
    bench.advance("s", 20_000)
    assert bench.engine.stats()["terms_forgotten"] > 100
    evaluations = query.poll()
    assert len(evaluations) == 200
    assert not any(list(evaluation.answer) for evaluation in evaluations)
    assert not any(map(factorized, evaluations))


def test_explain_reports_retained_factors(bench, query):
    fill(bench, 3, 2)
    one(query)
    text = bench.engine.explain(query)
    assert "retained as 2 factors" in text
    assert "actual 6 rows" in text


def test_columns_of_ids_are_made_once(bench, query):
    fill(bench, 3, 2)
    answer = one(query).answer
    assert answer.columns is answer.columns
    assert all(column.dtype == np.uint64 for column in answer.columns)
