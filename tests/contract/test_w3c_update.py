"""The W3C suite for SPARQL 1.1 Update: syntax, and the evaluations that only add triples."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from support import shared, w3c_update

RUNNER = shared.module("suites/w3c_update_runner.py")

# The evaluations that add triples only. The table is exact: all others are refused, because the stored graph only grows.
EVALUATED = """
    add: add01 add02 add03 add04 add05 add06 add07 add08
    basic-update: insert-data-spo1 insert-data-spo-named1 insert-data-spo-named2 insert-data-spo-named3
    basic-update: insert-where-01 insert-where-02 insert-where-03 insert-where-04 insert-using-01
    copy: copy02 copy04 copy07
    move: move07
    update-silent: create-silent copy-silent copy-to-default-silent add-silent add-to-default-silent
"""
LINES = [line.split(": ") for line in EVALUATED.strip().splitlines()]
NAMES = {f"{folder.strip()}/manifest#{name}" for folder, names in LINES for name in names.split()}


def identifier(test: Any) -> str:
    name: str = test.id.split("sparql11/", 1)[-1]
    return name


def cases(kind: str) -> list[Any]:
    return [pytest.param(test, id=identifier(test)) for test in w3c_update.tests() if test.kind == kind]


@pytest.mark.parametrize("test", [case for case in cases("update") if case.id in NAMES])
def test_evaluation_gives_the_expected_result(test: Any) -> None:
    expected = RUNNER.expected_state(w3c_update.suite(), test.expected)
    got = w3c_update.state_after(test.task)
    assert RUNNER.canonical(expected) == RUNNER.canonical(got), f"{test.task.request}\nwant {expected}\ngot {got}"


@pytest.mark.parametrize("test", [case for case in cases("update") if case.id not in NAMES])
def test_an_update_that_removes_is_refused_at_its_position(test: Any) -> None:
    with pytest.raises(penstock.QueryError, match="is not supported yet") as caught:
        w3c_update.state_after(test.task)
    line = test.task.request.splitlines()[caught.value.line - 1]
    word = line[caught.value.column - 1 :].split()[0].upper()
    assert word in ("DELETE", "CLEAR", "DROP", "MOVE", "COPY", "LOAD")


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
    assert len(NAMES & {identifier(test) for test in w3c_update.tests()}) == len(NAMES) == 26
