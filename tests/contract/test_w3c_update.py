"""The W3C suite for SPARQL 1.1 Update: syntax and evaluations."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from support import shared, w3c_update

RUNNER = shared.module("suites/w3c_update_runner.py")


def identifier(test: Any) -> str:
    name: str = test.id.split("sparql11/", 1)[-1]
    return name


def cases(kind: str) -> list[Any]:
    return [pytest.param(test, id=identifier(test)) for test in w3c_update.tests() if test.kind == kind]


@pytest.mark.parametrize("test", cases("update"))
def test_evaluation_gives_the_expected_result(test: Any) -> None:
    expected = RUNNER.expected_state(w3c_update.suite(), test.expected)
    got = w3c_update.state_after(test.task)
    assert RUNNER.canonical(expected) == RUNNER.canonical(got), f"{test.task.request}\nwant {expected}\ngot {got}"


@pytest.mark.parametrize("test", cases("syntax+"))
def test_good_text_is_accepted(test: Any) -> None:
    penstock.parse(test.task.request, test.task.base)


@pytest.mark.parametrize("test", cases("syntax-"))
def test_bad_text_is_refused(test: Any) -> None:
    with pytest.raises(penstock.QueryError):
        penstock.parse(test.task.request, test.task.base)


def test_the_suite_is_whole() -> None:
    counts = {kind: len(cases(kind)) for kind in ("update", "syntax+", "syntax-")}
    assert counts == {"update": 94, "syntax+": 42, "syntax-": 13}
