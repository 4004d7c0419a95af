"""Wukong's q1-q7 on LUBM-10 and LUBM-40 (OSDI'16 §6.1), in the core and by Python, with pyoxigraph in the same run.

The rows of both engines are compared as bags of terms. "Rows delivered": every term of every row is a Python object, of
rdflib or of pyoxigraph. The texts are the same strings each time, as from a service. "In the core": an execution after
one whose rows were not read, as the original measures. A separate row gives the time of an execution after Python has
filled the caches with its objects.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyoxigraph

import penstock
from benchmarks.core_time import clock_cost_us, core_times
from benchmarks.harness import Row, Spent, check, median_spent, need
from benchmarks.macro import lubm_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.core_time import Executions
    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks lubm"
SIZES = (10, 40)
TARGET_US = (100, 500, 100, 10, 10, 20, 2000)
KNOWN_ROWS = {10: (24, 10725, 0, 10, 14, 187, 331), 40: (109, 44051, 0, 10, 14, 187, 1478)}
_LOADS = 3


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for loading, memory and q1-q7."""
    folder = need("data/queries")
    texts = [(folder / f"lubm_q{i}.rq").read_text() for i in range(1, 8)]
    for size in (1,) if tiny else SIZES:
        yield from _size(size, lubm_data.whole(size), texts, repeats=2 if tiny else 0)


def _size(size: int, data: Path, texts: list[str], repeats: int) -> Iterator[Row]:
    loads = []
    for _ in range(_LOADS if size == 10 else 1):
        peer = pyoxigraph.Store()
        began = time.process_time()
        peer.bulk_load(path=str(data), format=pyoxigraph.RdfFormat.N_TRIPLES)
        loads.append(time.process_time() - began)
    ours = [_load(data) for _ in range(_LOADS - 1 if size == 10 else 0)]
    with penstock.Engine() as engine:
        ours.append(_load(data, engine))
        triples = engine.stats()["triples"]
        check(triples, len(peer), f"triples of LUBM-{size}")
        yield from _loading(size, ours, statistics.median(loads))
        yield from _queries(engine, peer, size, texts, repeats)


# ---- loading
def _load(data: Path, engine: penstock.Engine | None = None) -> tuple[int, float, float]:
    """Load a file. Returns triples, seconds of processor time (of all threads) and of wall time."""
    if engine is None:
        with penstock.Engine() as fresh:
            return _load(data, fresh)
    cpu, wall = time.process_time(), time.perf_counter()
    report = engine.load(data)
    return report.triples, time.process_time() - cpu, time.perf_counter() - wall


def _loading(size: int, loads: list[tuple[int, float, float]], peer_seconds: float) -> Iterator[Row]:
    triples = loads[0][0]
    peer = triples / peer_seconds
    yield Row(
        f"Bulk load of N-Triples to queryable, LUBM-{size}",
        triples / statistics.median(cpu for _, cpu, _ in loads),
        "triples/s",
        COMMAND,
        "pyoxigraph bulk_load",
        peer,
        max(500_000.0, 2 * peer),
        lower_is_better=False,
        clock="cpu",
        other_clock=triples / statistics.median(wall for _, _, wall in loads),
    )


# ---- queries
def _queries(
    engine: penstock.Engine, peer: pyoxigraph.Store, size: int, texts: list[str], repeats: int
) -> Iterator[Row]:
    cost = clock_cost_us(engine._runtime.core)
    in_core, delivered = [], []
    for i, text in enumerate(texts):
        rows = _same_rows(engine, peer, text, f"q{i + 1} on LUBM-{size}")
        if size in KNOWN_ROWS:
            check(rows, KNOWN_ROWS[size][i], f"rows of q{i + 1} on LUBM-{size}")
        theirs = median_spent(lambda: _peer_rows(peer, text), repeats or 5)  # noqa: B023
        with core_times() as alone:
            median_spent(lambda: engine.query(text), repeats or 31)  # noqa: B023 - rows are not looked at
        with core_times() as between:
            ours = median_spent(lambda: _rows(engine, text), repeats or (31 if rows < 1000 else 7))  # noqa: B023
        core = _median(alone, cost)
        in_core.append(theirs.cpu / max(core.cpu, 0.01))
        delivered.append(theirs.cpu / ours.cpu)
        yield _core_row(size, i, rows, core, theirs)
        after_rows = _median(between, cost)
        yield Row(
            "- in the core, where Python made objects of all rows since the last one",
            after_rows.cpu,
            "µs",
            COMMAND,
            clock="cpu",
            other_clock=after_rows.wall,
        )
        yield Row(
            f"LUBM-{size} q{i + 1}, Python API, same text again, rows delivered",
            ours.cpu,
            "µs",
            COMMAND,
            "pyoxigraph",
            theirs.cpu,
            theirs.cpu / 3 if i in (3, 4) else None,
            clock="cpu",
            other_clock=ours.wall,
        )
    for what, ratios, target in (("in the core", in_core, 50), ("Python API, rows delivered", delivered, 10)):
        yield Row(
            f"LUBM-{size} q1-q7, {what}: geometric mean of times faster than pyoxigraph",
            math.exp(statistics.mean(map(math.log, ratios))),
            "times",
            COMMAND,
            target=target,
            lower_is_better=False,
            clock="cpu",
        )


def _median(seen: dict[int, Executions], clock_cost: float) -> Spent:
    """Return the medians of the executions of the one plan in `seen`."""
    executions = next(iter(seen.values()))
    return Spent(statistics.median(executions.wall), max(0.0, statistics.median(executions.cpu) - clock_cost))


def _core_row(size: int, i: int, rows: int, core: Spent, theirs: Spent) -> Row:
    name = f"LUBM-{size} q{i + 1} in the core ({rows} rows), p50"
    target = TARGET_US[i] if size == 10 else None
    return Row(name, core.cpu, "µs", COMMAND, "pyoxigraph", theirs.cpu, target, clock="cpu", other_clock=core.wall)


def _rows(engine: penstock.Engine, text: str) -> list[dict[str, Any]]:
    return list(engine.query(text))  # type: ignore[arg-type]


def _peer_rows(peer: pyoxigraph.Store, text: str) -> list[tuple[Any, ...]]:
    return [tuple(solution) for solution in peer.query(text)]  # type: ignore[union-attr]


def _same_rows(engine: penstock.Engine, peer: pyoxigraph.Store, text: str, what: str) -> int:
    """Compare the bags of rows, and return the number of rows."""
    solutions = peer.query(text)
    names = [variable.value for variable in solutions.variables]  # type: ignore[union-attr]
    theirs = Counter(tuple(row[name].value for name in names) for row in solutions)  # type: ignore[union-attr]
    ours = Counter(tuple(str(row[name]) for name in names) for row in _rows(engine, text))
    if ours != theirs:
        check(ours - theirs, theirs - ours, f"{what}: rows that only one engine has")
    return ours.total()
