"""The W3C tests of SPARQL 1.1 entailment whose regimes include RDFS (suite `sparql11/entailment`)."""

from __future__ import annotations

import re
from typing import Any

import pytest
import rdflib
from rdflib.collection import Collection

from support import shared, w3c

RUNNER = shared.module("suites/w3c_runner.py")
ENGINE = w3c.adaptor("penstock")
REGIME = rdflib.URIRef("http://www.w3.org/ns/sparql-service-description#entailmentRegime")
ACTION = rdflib.URIRef("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#action")
RDFS = rdflib.URIRef("http://www.w3.org/ns/entailment/RDFS")

_REFLEXIVE = "every class and property is below itself: docs/semantics.md §4 leaves that out"
# The table is exact: a test listed here that passes fails the suite.
KNOWN_MISSES = dict.fromkeys(("paper-sparqldl-Q1-rdfs", "rdfs05", "rdfs11", "sparqldl-02", "sparqldl-03"), _REFLEXIVE)


def name(test: Any) -> str:
    return str(test.id.split("#")[-1])


def names_of_rdfs() -> set[str]:
    """Return the names of the tests for the RDFS regime."""
    manifest = rdflib.Graph().parse(
        shared.need("suites/w3c/sparql11/entailment/manifest.ttl"), publicID="http://w3c.invalid/manifest"
    )
    found = set()
    for test, action in manifest.subject_objects(ACTION):
        regimes = manifest.value(action, REGIME)
        if regimes == RDFS or (isinstance(regimes, rdflib.BNode) and RDFS in Collection(manifest, regimes)):
            found.add(str(test).split("#")[-1])
    return found


CHOSEN = names_of_rdfs()
CASES = [
    pytest.param(
        test,
        id=name(test),
        marks=[pytest.mark.xfail(reason=KNOWN_MISSES[name(test)], strict=True)] if name(test) in KNOWN_MISSES else [],
    )
    for test in w3c.tests()
    if test.skip == "entailment" and name(test) in CHOSEN
]


def entailing(text: str) -> str:
    """Return a query with WITH ENTAILMENT RDFS before its pattern."""
    return re.sub(r"(?i)\bWHERE\b|\{", lambda found: f" WITH ENTAILMENT RDFS {found[0]}", text, count=1)


@pytest.mark.parametrize("test", CASES)
def test_entailment_gives_the_expected_result(test: Any) -> None:
    expected, ordered = RUNNER.read_result(*test.result)
    got = ENGINE.evaluate(test.task._replace(query=entailing(test.task.query)))
    same, why = RUNNER.compare(expected, got, test.lax, ordered)
    assert same, f"{why}\n{test.task.query}\nexpected: {expected}\ngot: {got}"


def test_the_suite_is_whole() -> None:
    assert len(CASES) == 36
    assert set(KNOWN_MISSES) <= CHOSEN
