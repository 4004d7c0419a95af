"""MINUS is planned as a test of each row only where that gives the same result (ADR 78)."""

from __future__ import annotations

import pytest

import penstock

DATA = "".join(f"<urn:s{i}> <urn:p> {i % 7} ." + (f"<urn:s{i}> <urn:q> {i % 3} ." if i % 4 else "") for i in range(40))
STREAM = "FROM STREAM <urn:s> [RANGE 5s STEP 1s] "


@pytest.fixture
def engine():
    with penstock.Engine() as engine:
        engine.update(f"INSERT DATA {{ {DATA} }}")
        yield engine


def operators(engine, text: str) -> str:
    return str(engine.explain(text))


TESTED = (
    "{ ?s <urn:p> ?o MINUS { ?s <urn:q> ?x } }",
    "{ ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?y } MINUS { ?s <urn:q> ?x } }",
)
HASHED = (
    # ?o is unbound in the right side
    "{ ?s <urn:p> ?o MINUS { ?s <urn:q> ?x FILTER (!BOUND(?o)) } }",
    # ?y may be unbound on the left
    "{ ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?y } MINUS { ?z <urn:q> ?y } }",
    # no common variable is bound in every row of the right side
    "{ ?s <urn:p> ?o MINUS { ?z <urn:q> ?x OPTIONAL { ?s <urn:p> ?x } } }",
    "{ ?s <urn:p> ?o MINUS { SELECT ?s { ?s <urn:q> ?x } LIMIT 3 } }",
)


@pytest.mark.parametrize("pattern", TESTED)
def test_tested(engine, pattern):
    assert "semijoin" in operators(engine, f"SELECT * {pattern}")


@pytest.mark.parametrize("pattern", HASHED)
def test_hashed(engine, pattern):
    assert "semijoin" not in operators(engine, f"SELECT * {pattern}")


def test_small_right_side(engine):
    """A one-shot query with a small right side probes a hash table; a continuous query can be updated."""
    engine.update("INSERT DATA { <urn:s1> <urn:r> 1 }")
    pattern = "{ ?s <urn:p> ?o MINUS { ?s <urn:r> ?x } }"
    assert "semijoin" not in operators(engine, f"SELECT * {pattern}")
    engine.declare_stream("urn:s")
    query = engine.register(f"REGISTER QUERY q AS SELECT * {STREAM} WHERE {pattern}")
    assert "semijoin" in str(engine.explain(query))


def test_a_sub_select_keeps_the_graph_that_encloses_its_graph(engine):
    """MINUS in GRAPH ?g compares ?g, which the rows of a sub-select inside of GRAPH ?h must have."""
    engine.update(
        "INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> 1 . <urn:b> <urn:p> 1 . <urn:a> <urn:q> 2 }"
        " GRAPH <urn:h> { <urn:b> <urn:q> 2 } }"
    )
    group = "{ SELECT ?c (COUNT(*) AS ?n) { ?c <urn:p> ?t } GROUP BY ?c }"
    text = f"SELECT ?c ?g {{ GRAPH ?g {{ {{ SELECT ?c {{ GRAPH ?h {{ {group} }} }} }} MINUS {{ ?c <urn:q> ?x }} }} }}"
    rows = sorted((str(row["c"]), str(row["g"])) for row in engine.query(text))
    assert rows == [("urn:a", "urn:h"), ("urn:b", "urn:g")]
