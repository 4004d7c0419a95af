"""Corners of SPARQL 1.1 that random cases found and the W3C suites do not have."""

from __future__ import annotations

from typing import Any

import pytest

import penstock

DATA = b"<urn:a> <urn:q> <urn:b> .\n<urn:b> <urn:q> <urn:a> .\n<urn:b> <urn:q> <urn:b> ."


@pytest.fixture(scope="module")
def engine() -> Any:
    with penstock.Engine() as made:
        made.load(DATA, format="nt")
        made.load(b"<urn:a> <urn:q> <urn:b> .", format="nt", graph="urn:g")
        yield made


@pytest.mark.parametrize(
    ("pattern", "present"),
    [
        ("{ SELECT ?c { ?c <urn:q> ?d } }", 3),
        ("{ SELECT ?c { ?c <urn:q> ?d } LIMIT 2 }", 2),
        ("VALUES ?c { 1 2 }", 2),
        ("{ ?c <urn:q> ?d } UNION { ?d <urn:q> ?c }", 6),
        ("OPTIONAL { ?c <urn:q> <urn:c> }", 1),
        ("MINUS { ?c <urn:q> ?d }", 1),
        ("BIND(1 AS ?x)", 1),
        ("{ SELECT (COUNT(*) AS ?n) { ?c <urn:q> ?d } }", 1),
    ],
)
def test_a_pattern_of_constants_is_a_test_whatever_it_is_joined_with(engine: Any, pattern: str, present: int) -> None:
    there, absent = "<urn:a> <urn:q> <urn:b> .", "<urn:a> <urn:p> <urn:b> ."
    assert len(engine.query(f"SELECT * {{ {there} {pattern} }}")) == present
    assert len(engine.query(f"SELECT * {{ {absent} {pattern} }}")) == 0


@pytest.mark.parametrize(
    ("group", "rows"),
    [
        ("", 1),
        ("VALUES ?x { 1 }", 1),
        ("{ BIND(1 AS ?x) } UNION { BIND(2 AS ?x) }", 2),
        ("OPTIONAL { ?s <urn:none> ?o }", 1),
        ("{ SELECT (COUNT(*) AS ?n) { ?s ?p ?o } }", 1),
    ],
)
def test_an_unknown_graph_has_no_solutions_whatever_is_asked_of_it(engine: Any, group: str, rows: int) -> None:
    assert len(engine.query(f"SELECT * {{ GRAPH <urn:g> {{ {group} }} }}")) == rows
    assert len(engine.query(f"SELECT * {{ GRAPH <urn:unknown> {{ {group} }} }}")) == 0


def test_alternatives_that_say_the_same_give_their_rows_twice(engine: Any) -> None:
    assert len(engine.query("SELECT * { ?s (<urn:q>|<urn:q>) ?o }")) == 6
    assert len(engine.query("SELECT * { ?s (<urn:q>|<urn:q>)? ?o }")) == 4


def test_a_variable_of_a_sub_select_that_is_not_projected_is_another(engine: Any) -> None:
    assert len(engine.query("SELECT * { ?s <urn:q> <urn:a> { SELECT ?o { ?s <urn:q> ?o } } }")) == 3


@pytest.mark.parametrize("unbound", ["", "OPTIONAL { ?c <urn:none> ?b }"])
def test_a_path_of_length_zero_starts_from_what_exists_substitutes(engine: Any, unbound: str) -> None:
    query = f"SELECT * {{ VALUES ?c {{ <urn:nowhere> }} {unbound} FILTER EXISTS {{ ?c <urn:q>? ?b }} }}"
    assert len(engine.query(query)) == 1  # SPARQL 1.1 §18.6: ?c is a term there, and a term reaches itself (§18.4)
    assert len(engine.query("SELECT * { VALUES ?c { <urn:nowhere> } ?c <urn:q>? ?b }")) == 0


@pytest.mark.parametrize("needle", ["?unbound", "1/0", "<urn:a> + 1"])
@pytest.mark.parametrize("operator", ["IN", "NOT IN"])
def test_membership_in_an_empty_list_evaluates_the_left_side(engine: Any, needle: str, operator: str) -> None:
    def value(left: str) -> str:
        (row,) = engine.query(f"SELECT (COALESCE({left} {operator} (), 'error') AS ?x) {{}}")
        return str(row["x"])

    assert value(f"({needle})") == "error"  # SPARQL 1.1 §17.4.1.9, §17.4.1.10
    assert value("1") == ("true" if operator == "NOT IN" else "false")
    assert len(engine.query(f"SELECT * {{ FILTER({needle} {operator} ()) }}")) == 0
