"""rsp4j's window and join cases with its authors' expected bindings.

Its windows are [c - range, c) and all streams share one clock: times move by 1 ms, and an event advances every stream.
"""

from __future__ import annotations

import itertools
import json
from typing import Any
from urllib.parse import urljoin

import pyoxigraph as ox
import pytest

import penstock
from support import shared
from support.answers import Rows, difference, from_api

CASES = json.loads(shared.need("suites/rsp4j_cases.json").read_text(encoding="utf-8"))
BASE = "http://rsp4j.example/"


def term(value: dict[str, str]) -> Any:
    if value["type"] == "uri":
        return ox.NamedNode(value["value"])
    return ox.Literal(value["value"], datatype=ox.NamedNode(value["datatype"]))


def clock(case: Any) -> Any:
    """Yield (time, [(stream, data)…]) of all streams together."""
    merged = sorted(
        ((time + 1, urljoin(BASE, name), data) for name, events in case["streams"].items() for time, data in events),
        key=lambda event: event[0],
    )
    for time, group in itertools.groupby(merged, key=lambda event: event[0]):
        yield time, [(stream, data) for _, stream, data in group]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_the_authors_bindings_are_reported(case: Any) -> None:
    rows = []
    variables: tuple[str, ...] = ()
    with penstock.Engine() as engine:
        streams = [urljoin(BASE, name) for name in case["streams"]]
        for stream in streams:
            engine.declare_stream(stream, timing="all")
        engine.load("\n".join(case["static"]).encode(), format="nt")
        query = engine.register(case["query"], base=BASE)
        for time, events in clock(case):
            for stream, data in events:
                engine.push(stream, data, timestamp=time)
            for stream in streams:
                engine.advance(stream, time)
        for evaluation in query.poll():
            answer = from_api(evaluation.answer)
            assert isinstance(answer, Rows)
            variables, rows = answer.variables, rows + list(answer.rows)
    solutions = [{name: term(value) for name, value in row.items()} for row in case["expected"]]
    expected = Rows(variables, tuple(tuple(row.get(name) for name in variables) for row in solutions))
    assert difference(expected, Rows(variables, tuple(rows))) is None
