"""The syntax tests of the W3C suite for SPARQL 1.1 Update."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from support import shared

RUNNER = shared.module("suites/w3c_update_runner.py")
TESTS = tuple(RUNNER.Suite(str(shared.need("suites/w3c-update"))).tests())


def cases(kind: str) -> list[Any]:
    return [pytest.param(test, id=test.id.split("sparql11/", 1)[-1]) for test in TESTS if test.kind == kind]


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
