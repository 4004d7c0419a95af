"""Normalized and prepared texts (docs/adr/0088-prepared-texts.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.engine.oneshot.normalization import normalize
from penstock.query.ir import ChangeData, ContinuousQuery
from penstock.query.parser import parse
from penstock.query.planning.quad_templates import templates_of
from penstock.query.prepared import BoundModify, BoundQuery, prepare
from penstock.query.templates import parametrise
from support.siblings import sibling

PREFIX = "PREFIX ex: <http://ex.org/> "

QUERIES = [
    "SELECT * { ex:a ?p ?o }",
    "SELECT * { <urn:a> ?p 5 ; ?q 5.0, 'x', \"y\"@EN, '1'^^ex:t . ?s ex:p ex:c FILTER(?p != ex:z && ?o > 10) } LIMIT 3",
    "SELECT (COUNT(*) AS ?n) { { ex:a ex:p+ ?x } UNION { ?x ex:q 'a' } OPTIONAL { ?x ex:r ex:b } } HAVING(?n > 1)",
    "ASK { GRAPH ex:g { ?s ?p :local . } }".replace(":local", "ex:local-5"),
    "SELECT ?x { ?x ex:p ?y FILTER NOT EXISTS { ?y ex:q ex:a . ?y ex:r 7. } VALUES ?x { ex:a ex:b } }",
    "CONSTRUCT { ex:a ex:says ?o } WHERE { ex:a ?p ?o }",
    "SELECT ?x { ?x ex:p ?y . FILTER(?y<5 && ?x >6) }".replace("<5", "< 5"),
]
UPDATES = [
    "INSERT DATA { ex:a ex:p 1, 'x'@de . GRAPH ex:g { ex:a ex:p ex:b } }",
    "DELETE DATA { ex:a ex:p 1 }",
    "DELETE { ex:a ex:p ?o } INSERT { GRAPH ex:g { ex:a ex:p 5 } } WHERE { ex:a ex:p ?o FILTER(?o < 7) }",
    "DELETE WHERE { ex:a ex:p ?o } ; INSERT { ?s ex:q ex:b } WHERE { ?s ex:p 'x' }",
]


def bound(text: str) -> BoundQuery | object:
    """Return the statement of a text, prepared by a sibling."""
    other = sibling(text, 1)
    assert other is not None
    assert other != text
    normalized, its = normalize(text), normalize(other)
    assert normalized is not None
    assert its is not None
    assert normalized.pattern == its.pattern
    prepared = prepare(its, parse(other))
    assert prepared is not None
    return prepared.bind(text, normalized.constants)


@pytest.mark.parametrize("text", QUERIES)
def test_a_bound_query_has_the_template_and_the_constants_of_its_text(text: str) -> None:
    found = bound(PREFIX + text)
    statement = parse(PREFIX + text)
    assert isinstance(found, BoundQuery)
    assert isinstance(statement, ContinuousQuery)
    template, constants = parametrise(statement)
    assert found.prepared.template == template
    assert found.constants == constants


@pytest.mark.parametrize("text", UPDATES)
def test_a_bound_update_has_the_operations_of_its_text(text: str) -> None:
    found, expected = bound(PREFIX + text), parse(PREFIX + text)
    assert found.text == PREFIX + text
    for operation, other in zip(found.operations, expected.operations, strict=True):
        if isinstance(operation, ChangeData):
            assert operation == other
        else:
            assert isinstance(operation, BoundModify)
            template, constants = parametrise(other.query)
            assert replace(operation.query.prepared.template.query, text="") == template.query
            assert operation.query.constants == constants
            assert (operation.templates, operation.constants) == templates_of(other)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s ?p ?o }",
        "SELECT * { <urn:a> ?p ?o } # a comment",
        'SELECT * { <urn:a> ?p "a\\n" }',
        'SELECT * { <urn:a> ?p """a""" }',
        "SELECT * { <relative> ?p <urn:a> }",
        "SELECT * { ?s ?p 'x' FILTER(?a <'x y'&&?b>3) }",
        "SELECT * { <urn:a> ?p '\ud800' }",
        "SELECT * { <urn:a> ?p 'x' }" + " " * 5_000,
        "SELECT * { ?s ?p " + ", ".join(map(str, range(200))) + " }",
    ],
    ids=["no constant", "comment", "escape", "long string", "relative", "uncertain", "surrogate", "long", "many"],
)
def test_a_text_whose_constants_are_not_plain_is_not_normalized(text: str) -> None:
    assert normalize(text) is None


def test_kinds_of_constants_are_parts_of_the_pattern() -> None:
    patterns = {
        normalize(f"SELECT * {{ ?s ?p {constant} }}").pattern  # type: ignore[union-attr]
        for constant in ("5", "5.0", "'5'", "<urn:5>", "ex:a5", "'5'@en", "-5 , 5")
    }
    assert len(patterns) == 7


def test_a_continuous_query_is_not_prepared() -> None:
    text = "SELECT * FROM STREAM <urn:s> [RANGE 1s STEP 1s] { ?s ?p 5 }"
    assert prepare(normalize(text), parse(text)) is None  # type: ignore[arg-type]


def test_an_update_that_clears_is_not_prepared() -> None:
    text = "CLEAR GRAPH <urn:g> ; INSERT DATA { <urn:a> <urn:p> 5 }"
    assert prepare(normalize(text), parse(text)) is None  # type: ignore[arg-type]


def test_limits_names_of_graphs_and_predicates_are_no_parameters() -> None:
    text = "SELECT * { GRAPH <urn:g> { ?s <urn:p> ?o } } LIMIT 5"
    assert prepare(normalize(text), parse(text)) is None  # type: ignore[arg-type]
