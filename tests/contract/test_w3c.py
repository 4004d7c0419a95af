"""Every SPARQL 1.0 and 1.1 query-evaluation and syntax test of the W3C suites (entailment and SERVICE left out)."""

from __future__ import annotations

import os
from typing import Any

import pytest

import penstock
from support import shared, w3c

RUNNER = shared.module("suites/w3c_runner.py")
# PENSTOCK_W3C_ENGINE=pyoxigraph (or rdflib) runs the same tests on another engine, to prove the harness: 493 (468) of 519.
ENGINE = w3c.adaptor(os.environ.get("PENSTOCK_W3C_ENGINE", "penstock"))

# id after ".../tests/" -> why it cannot pass. The table is exact: a test listed here that passes fails the suite.
KNOWN_MISSES: dict[str, str] = {
    "data-sparql11/service/manifest#service7": "SERVICE is refused at registration",
}


def identifier(test: Any) -> str:
    return test.id.split("/tests/", 1)[-1]


def cases(kind: str) -> list[Any]:
    chosen = [test for test in w3c.tests() if test.kind == kind and not test.skip]
    return [
        pytest.param(
            test,
            id=identifier(test),
            marks=[pytest.mark.xfail(reason=KNOWN_MISSES[identifier(test)], strict=True)]
            if identifier(test) in KNOWN_MISSES
            else [],
        )
        for test in chosen
    ]


@pytest.mark.parametrize("test", cases("eval"))
def test_evaluation_gives_the_expected_result(test: Any) -> None:
    expected, ordered = RUNNER.read_result(*test.result)
    got = ENGINE.evaluate(test.task)
    same, why = RUNNER.compare(expected, got, test.lax, ordered)
    assert same, f"{why}\n{test.task.query}\nexpected: {expected}\ngot: {got}"


@pytest.mark.parametrize("test", cases("syntax+"))
def test_good_text_is_accepted(test: Any) -> None:
    ENGINE.parse(test.task.query, test.task.base)


@pytest.mark.parametrize("test", cases("syntax-"))
def test_bad_text_is_refused(test: Any) -> None:
    refusals = (SyntaxError,) if "PENSTOCK_W3C_ENGINE" in os.environ else (penstock.QueryError,)
    with pytest.raises(refusals):
        ENGINE.parse(test.task.query, test.task.base)


def test_the_suite_is_whole() -> None:
    counts = {kind: len(cases(kind)) for kind in ("eval", "syntax+", "syntax-")}
    assert counts == {"eval": 519, "syntax+": 212, "syntax-": 90}


def test_known_misses_are_tests_of_the_suite() -> None:
    assert set(KNOWN_MISSES) <= {identifier(test) for test in w3c.tests()}
