"""GRAPH ?g evaluates its pattern in each graph by itself (SPARQL 1.1 §18.6), whatever the pattern begins with."""

from __future__ import annotations

from typing import Any

import pytest

import penstock

STORED = b"""
<urn:c> <urn:v> <urn:y> <urn:g1> .
<urn:e> <urn:v> <urn:y> <urn:g1> .
<urn:d> <urn:q> <urn:c> <urn:g2> .
<urn:d> <urn:v> <urn:z> <urn:g3> .
<urn:d> <urn:q> <urn:f> <urn:g3> .
"""


@pytest.fixture(scope="module")
def engine() -> Any:
    with penstock.Engine() as made:
        made.load(STORED, format="nquads")
        yield made


def rows(answer: Any, *names: str) -> list[tuple[str | None, ...]]:
    """Return the rows as sorted tuples of the last character of each term."""
    found = [tuple(None if name not in row else str(row[name])[-1] for name in names) for row in answer]
    return sorted(found, key=lambda row: tuple(cell or "" for cell in row))


def test_a_leading_optional_is_evaluated_in_each_graph(engine: Any) -> None:
    answer = engine.query("SELECT * { GRAPH ?g { OPTIONAL { ?x <urn:q> ?w } ?y <urn:v> ?u } }")
    assert rows(answer, "g", "x", "y") == [("1", None, "c"), ("1", None, "e"), ("3", "d", "d")]


PATTERNS = {
    "an empty group first": ("{} ?y <urn:v> ?u", 3),
    "two optionals first": ("OPTIONAL { ?x <urn:q> ?w } OPTIONAL { ?w <urn:v> ?k } ?y <urn:v> ?u", 5),
    "a union that starts with an optional": ("{ OPTIONAL { ?x <urn:q> ?w } ?y <urn:v> ?u } UNION { ?x <urn:q> ?w }", 5),
    "an optional joined with a union": ("OPTIONAL { ?x <urn:q> ?w } { ?y <urn:v> ?u } UNION { ?y <urn:q> ?u }", 5),
    "minus of nothing but values": ("{ VALUES ?y { <urn:c> <urn:d> } MINUS { ?y <urn:v> ?u } } ?a <urn:q> ?b", 3),
    "not exists over values": ("VALUES ?y { <urn:d> } FILTER NOT EXISTS { ?y <urn:v> ?u }", 2),
    "not exists over values, joined": (
        "{ VALUES ?y { <urn:d> } FILTER NOT EXISTS { ?y <urn:v> ?u } } ?a <urn:q> ?b",
        1,
    ),
    "exists in a bind": ("BIND(EXISTS { ?y <urn:q> ?w } AS ?has) FILTER(?has) ?a <urn:v> ?b", 1),
    "count without a match": ("{ SELECT (COUNT(*) AS ?n) { ?s <urn:v> ?o } }", 3),
    "count beside a pattern": ("{ SELECT (COUNT(*) AS ?n) { ?s <urn:v> ?o } } ?a <urn:q> ?b", 2),
    "a limit in each graph": ("{ SELECT ?s { ?s ?p ?o } ORDER BY ?s LIMIT 1 }", 3),
    "an offset in each graph": ("{ SELECT ?s { ?s ?p ?o } OFFSET 1 }", 2),
    "an optional in a sub-select": ("{ SELECT ?x ?y { OPTIONAL { ?x <urn:q> ?w } ?y <urn:v> ?u } }", 3),
    "distinct over an optional": ("{ SELECT DISTINCT ?x { OPTIONAL { ?x <urn:q> ?w } } } ?y <urn:v> ?u", 3),
    "another graph first": ("GRAPH ?h { OPTIONAL { ?x <urn:none> ?w } } ?y <urn:q> ?u", 6),
    "a path of length zero": ("<urn:d> <urn:none>* ?x OPTIONAL { ?y <urn:q> <urn:c> }", 3),
    "nothing": ("", 3),
    "an optional alone": ("OPTIONAL { ?x <urn:q> ?w }", 3),
    "a filter on the graph, which is not yet bound": ("?y <urn:v> ?u FILTER(BOUND(?g))", 0),
    "values that name the graph": ("VALUES ?g { <urn:g1> <urn:none> } OPTIONAL { ?x <urn:q> ?w } ?y <urn:v> ?u", 2),
    "bind that names the graph": ("BIND(<urn:g3> AS ?g) OPTIONAL { ?x <urn:q> ?w } ?y <urn:v> ?u", 1),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_each_graph_gives_the_solutions_of_the_pattern_in_it(engine: Any, name: str) -> None:
    """The union over the graphs of what GRAPH <g> gives, joined with the name."""
    pattern, size = PATTERNS[name]
    answer = engine.query(f"SELECT * {{ GRAPH ?g {{ {pattern} }} }}")
    names = [v for v in answer.variables if v != "g"]
    expected = []
    for graph in ("1", "2", "3"):
        one = engine.query(f"SELECT * {{ GRAPH <urn:g{graph}> {{ {pattern} }} }}")
        expected += [
            (graph, *row[:-1]) for row in rows(one, *names, "g") if row[-1] in (None, graph) or "g" not in one.variables
        ]
    got = rows(answer, "g", *names)
    assert got == sorted(expected, key=lambda row: tuple(cell or "" for cell in row))
    assert len(got) == size


def test_rows_to_the_left_that_bind_the_graph_change_nothing(engine: Any) -> None:
    pattern = "GRAPH ?g { OPTIONAL { ?x <urn:q> ?w } ?y <urn:v> ?u }"
    assert len(engine.query(f"SELECT * {{ VALUES ?g {{ <urn:g1> <urn:g2> }} {pattern} }}")) == 2
    assert len(engine.query(f"SELECT * {{ VALUES ?g {{ <urn:g3> UNDEF }} {pattern} }}")) == 4
    assert len(engine.query(f"SELECT * {{ GRAPH ?g {{ ?d <urn:q> ?f }} {pattern} }}")) == 1


def test_windows_are_graphs_of_their_own() -> None:
    query = """
    SELECT ?g ?x ?y FROM NAMED STREAM <urn:s1> [RANGE 1s STEP 1s] FROM NAMED STREAM <urn:s2> [RANGE 1s STEP 1s]
    WHERE { GRAPH ?g { OPTIONAL { ?x <urn:q> ?w } ?y <urn:v> ?u } }
    """
    with penstock.Engine() as engine:
        for stream in ("urn:s1", "urn:s2"):
            engine.declare_stream(stream, timing="all")
        found = engine.register(query)
        engine.push("urn:s1", "<urn:c> <urn:v> <urn:y> .", 500)
        engine.push("urn:s2", "<urn:d> <urn:q> <urn:c> .", 500)
        engine.advance(None, 1000)
        (evaluation,) = found.poll()
        assert rows(evaluation.answer, "g", "x", "y") == [("1", None, "c")]


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("OPTIONAL { ?x <urn:none> ?y }", 1),
        ("{ SELECT ?x { ?x <urn:v> ?y } }", 1),
        ("", 1),
        ("VALUES ?x { 1 2 }", 2),
    ],
)
def test_a_window_is_there_whatever_is_asked_of_it(pattern: str, size: int) -> None:
    query = (
        f"SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 1s STEP 1s] WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"
    )
    with penstock.Engine() as engine:
        engine.declare_stream("urn:s", timing="all")
        found = engine.register(query)
        engine.push("urn:s", "<urn:c> <urn:v> <urn:y> .", 500)
        engine.advance(None, 1000)
        (evaluation,) = found.poll()
        assert len(evaluation.answer) == size


@pytest.mark.parametrize("call", ["SUM(?a)", "AVG(?a)", "GROUP_CONCAT(?none)", "SUM(?none)"])
def test_an_aggregate_that_is_an_error_is_not_the_aggregate_of_no_solution(call: str) -> None:
    """In each graph, an aggregate without GROUP BY has a value if there is no solution, and none if it is an error."""
    aggregated = f"SELECT ({call} AS ?n) {{ ?a <urn:p> ?b }}"
    with penstock.Engine() as engine:
        engine.load(b"<urn:a> <urn:p> <urn:b> <urn:g1> .\n<urn:a> <urn:q> <urn:b> <urn:g2> .", format="nquads")
        found = {
            str(row["g"]): row.get("n") for row in engine.query(f"SELECT * {{ GRAPH ?g {{ {{ {aggregated} }} }} }}")
        }
        empty = "" if call.startswith("GROUP_CONCAT") else "0"
        assert {graph: value if value is None else str(value) for graph, value in found.items()} == {
            "urn:g1": None,
            "urn:g2": empty,
        }
        unbound = f"SELECT ?g {{ GRAPH ?g {{ {{ {aggregated} }} FILTER(!BOUND(?n)) }} }}"
        assert [str(row["g"]) for row in engine.query(unbound)] == ["urn:g1"]
