"""Which predicates a query looks at, as adaptors must let them through."""

from __future__ import annotations

import pytest

from penstock.query.parser import parse
from penstock.query.predicates import predicates_of

FORM = "REGISTER QUERY q AS SELECT * FROM STREAM <http://x/s> [{window}] WHERE {{ {pattern} }}"


def needed(pattern, window="RANGE 1s STEP 1s"):
    return predicates_of(parse(FORM.format(pattern=pattern, window=window), "http://x/"))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("?s <p> ?o", "p"),
        ("?s <p> ?o ; <q> 1 . ?o a <T>", "p q http://www.w3.org/1999/02/22-rdf-syntax-ns#type"),
        ("{ ?s <p> ?o } UNION { ?s <q> ?o OPTIONAL { ?o <r> ?x } }", "p q r"),
        ("?s <p>/^<q>/(<r>|<t>)+ ?o", "p q r t"),
        ("?s <p> ?o FILTER NOT EXISTS { ?o <q> ?x MINUS { ?x <r> 2 } }", "p q r"),
        ("GRAPH <g> { ?s <p> ?o } { SELECT ?s { ?s <q> ?x } GROUP BY ?s HAVING (COUNT(?x) > 1) }", "p q"),
        ("?s <p> ?o BIND(<urn:x-penstock:fn/timestamp>(?s, <q>, ?o) AS ?t)", "p q"),
        ("VALUES ?x { 1 2 }", ""),
    ],
)
def test_predicates_that_are_named(pattern, names):
    assert needed(pattern) == {name if ":" in name else f"http://x/{name}" for name in names.split()}


@pytest.mark.parametrize(
    "pattern",
    [
        "?s ?p ?o",
        "?s <p> ?o FILTER EXISTS { ?o ?p 1 }",
        "?s <p>* ?o",
        "?s <p>? ?o",
        "?s !<p> ?o",
        "?s <p> ?o . ?o <q> ?p FILTER(<urn:x-penstock:fn/timestamp>(?s, ?p, ?o) > 1)",
    ],
)
def test_it_may_look_at_any(pattern):
    assert needed(pattern) is None


def test_windows_that_count_hold_tuples_of_any_predicate():
    assert needed("?s <p> ?o", window="TRIPLES 5") is None


def test_describe_looks_at_everything_of_a_node():
    assert predicates_of(parse("DESCRIBE ?s { ?s <http://x/p> ?o }")) is None
