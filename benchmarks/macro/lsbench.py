"""L1-L6 of LSBench, as Wukong+S measured them (SOSP'17 §6.2), on its id-coded sample.

Windows 1 s / 100 ms; rows of every window are checked against brute force. Targets are those of the floors issue;
the peer is the original engine on this kind of machine (shared notes), at the same rates.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import rdflib

import penstock
from benchmarks.core_time import core_times
from benchmarks.harness import Row, shared

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMAND = "python -m benchmarks lsbench"
STREAMS = "http://lsbench.example/stream/"
QUERIES = ("L1", "L2", "L3", "L4", "L5", "L6")
ORIGINAL_US = {
    1: dict(zip(QUERIES, (28, 3.0, 112, 48, 994, 256), strict=True)),
    20: dict(zip(QUERIES, (37, 3.3, 123, 928, 17436, 4227), strict=True)),
    100: dict(zip(QUERIES, (44, 4.4, 139, 6030, 93564, 22406), strict=True)),
}
TARGET_US = dict(zip(QUERIES, (3, 2, 8, 80, 250, 50), strict=True))
ORIGINAL_INJECTION_US = {1: 190, 20: 1510, 100: 7090}
WINDOWS = {1: 100, 20: 60, 100: 20}


def run() -> Iterator[Row]:
    """Rows for the rates x1, x20, x100."""
    folder = shared("data/lsbench-ids")
    if folder is None:
        return
    for scale, windows in WINDOWS.items():
        yield from _at_rate(folder, scale, windows)


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("make_events", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _at_rate(folder: Path, scale: int, windows: int) -> Iterator[Row]:
    sample = _module(folder / "make_events.py")
    expected = sample.counts(scale, windows)
    with penstock.Engine() as engine:
        stored = "".join("<{}> <{}> <{}> .\n".format(*map(_iri, row)) for row in sample.rows("id_mr0_sibdataset.nt"))
        engine.load(stored.encode(), format="nt")
        columns = {name: _columns(sample, name, scale, windows) for name in sample.RATE}
        for name in columns:
            engine.declare_stream(STREAMS + name, timing="all" if name == "gps" else ())
        found, times, closing = {}, {}, {}
        for name in QUERIES:
            text = (folder / "queries" / f"{name}.rq").read_text()
            found[name], times[name], closing[name] = _play_one(text, columns, stored, windows)
        push, close = _inject(engine, columns, windows)
    for name in QUERIES:
        assert found[name] == expected[name], f"{name} at x{scale}: wrong rows"
        target = TARGET_US[name] if scale == 20 else ORIGINAL_US[scale][name] / 3
        yield Row(
            f"LSBench {name} at x{scale}, in the core, p50",
            times[name],
            "µs",
            COMMAND,
            "Wukong+S",
            ORIGINAL_US[scale][name],
            target,
        )
    tuples = statistics.mean(push[1])
    yield Row(
        f"LSBench injection at x{scale}: push_columns and close, a 100 ms batch of {tuples:.0f} tuples, p50",
        statistics.median(push[0]) + statistics.median(close),
        "µs",
        COMMAND,
        "Wukong+S",
        ORIGINAL_INJECTION_US[scale],
        300 if scale == 20 else None,
    )


def _iri(number: int) -> str:
    return f"http://lsbench.example/{number}"


def _columns(sample: Any, name: str, scale: int, windows: int) -> tuple[Any, ...]:
    """(times, s, p, o) of the stream, as numbers of the sample."""
    events = [(t, triple) for t, triple in sample.stamped(name, scale) if t <= windows * 100]
    return np.array([t for t, _ in events], np.int64), np.array([triple for _, triple in events], np.int64).reshape(
        -1, 3
    )


def _encoded(engine: penstock.Engine, columns: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    numbers = np.unique(np.concatenate([triples.ravel() for _, triples in columns.values()]))
    ids = engine.encode(rdflib.URIRef(_iri(int(number))) for number in numbers)
    return {
        name: (times, *(ids[np.searchsorted(numbers, triples[:, i])] for i in range(3)))
        for name, (times, triples) in columns.items()
    }


def _play_one(
    text: str, columns: dict[str, tuple[Any, ...]], stored: str, windows: int
) -> tuple[list[int], float, float]:
    """Rows of every window, p50 in the core (second half), for one query alone in an engine."""
    with penstock.Engine() as engine, core_times() as times:
        engine.load(stored.encode(), format="nt")
        encoded = _encoded(engine, columns)
        for name in columns:
            engine.declare_stream(STREAMS + name, timing="all" if name == "gps" else ())
        query = engine.register(text)
        for name in columns:
            engine.advance(STREAMS + name, 0)
        rows = []
        order = []
        for k in range(1, windows + 1):
            _push(engine, encoded, 100 * (k - 1), 100 * k)
            before = {plan: len(spent) for plan, spent in times.items()}
            engine.advance(None, 100 * k)
            order += [spent[-1] for plan, spent in times.items() if len(spent) > before.get(plan, 0)]
            rows += [len(evaluation.answer) for evaluation in query.poll()]  # type: ignore[arg-type]
    return rows, statistics.median(order[len(order) // 2 :]), 0.0


def _push(engine: penstock.Engine, columns: dict[str, tuple[Any, ...]], after: int, until: int) -> int:
    pushed = 0
    for name, (times, *triple) in columns.items():
        low, high = np.searchsorted(times, (after, until), side="right")
        if high > low:
            engine.push_columns(STREAMS + name, times[low:high], *(column[low:high] for column in triple))
            pushed += int(high - low)
    return pushed


def _inject(
    engine: penstock.Engine, columns: dict[str, tuple[Any, ...]], windows: int
) -> tuple[tuple[list[float], list[int]], list[float]]:
    """Times of pushing and of closing each 100 ms batch of all streams, without queries."""
    encoded = _encoded(engine, columns)
    for name in columns:
        engine.advance(STREAMS + name, 0)
    pushes, counts, closes = [], [], []
    for k in range(1, windows + 1):
        began = time.perf_counter_ns()
        counts.append(_push(engine, encoded, 100 * (k - 1), 100 * k))
        pushed = time.perf_counter_ns()
        engine.advance(None, 100 * k)
        closes.append((time.perf_counter_ns() - pushed) / 1000)
        pushes.append((pushed - began) / 1000)
    return (pushes, counts), closes
