"""CSRBench's four queries: each window's answer, for every t0 that its oracle lists, as sets.

Its windows are [from, to), reported when they close: times move by 1 ms, and STARTING AT puts the grid on t0.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyoxigraph as ox
import pytest

import penstock
from support import shared
from support.answers import Rows, from_api

FOLDER = shared.need("suites/csrbench")
STREAM = "http://ex.org/streams/test"
LAST_MS = 33_000


def expected(number: int) -> Any:
    return json.loads((FOLDER / "expected" / f"expected_Q{number}.json").read_text(encoding="utf-8"))


CASES = [(number, t0) for number in (1, 2, 3, 4) for t0 in map(int, expected(number)["by_t0"])]


def text(number: int, first_close: int) -> str:
    """The authors' C-SPARQL text with its parameters filled in, starting at the first window's close."""
    case = expected(number)
    limits = dict(re.findall(r"\?value\s*([<>])\s*(\d+)", case["query"]))
    parameters = {"WSIZE": f"{case['size_ms']}ms", "WSLIDE": f"{case['slide_ms']}ms"}
    parameters |= {
        "TEMP": limits[">"],
        "VALUE": limits[">"],
        "VALUE_MIN": limits[">"],
        "VALUE_MAX": limits.get("<", ""),
    }
    filled = re.sub(r"\$\{(\w+)\}", lambda m: parameters[m[1]], (FOLDER / f"csparql_Q{number}.rq").read_text("utf-8"))
    return filled.replace("QUERY test AS", f"QUERY test STARTING AT {first_close} AS", 1)


def rows(answer: Any) -> set[Any]:
    got = from_api(answer)
    assert isinstance(got, Rows)
    return {
        tuple(sorted((name, key(term)) for name, term in zip(got.variables, row, strict=True) if term is not None))
        for row in got.rows
    } - {()}


def key(term: Any) -> Any:
    return term.value if isinstance(term, ox.NamedNode) else round(float(term.value), 9)


@pytest.mark.parametrize(("number", "t0"), CASES)
def test_windows_hold_the_published_rows(number: int, t0: int) -> None:
    case = expected(number)
    with penstock.Engine() as engine:
        engine.declare_stream(STREAM, timing="all")
        query = engine.register(text(number, t0 + case["size_ms"]))
        for path in sorted((FOLDER / "data").glob("*.ttl")):
            second = int(path.stem.removeprefix("data_"))
            engine.push(STREAM, path.read_bytes(), timestamp=second * 1000 + 1, format="turtle")
        engine.advance(STREAM, LAST_MS + 2 * case["size_ms"])
        found = {evaluation.time: rows(evaluation.answer) for evaluation in query.poll()}
    windows = case["by_t0"][str(t0)]
    assert min(found) == t0 + case["size_ms"]
    for window in windows:
        expected_rows = {
            tuple(sorted((k, round(v, 9) if isinstance(v, float) else v) for k, v in row.items()))
            for row in window["rows"]
        }
        assert found[window["to"]] == expected_rows, window
