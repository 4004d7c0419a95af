"""L1-L3 over random start constants, new ones each execution, answers counted: executions a second by group size.

One core; windows stand still at one instant of LSBench. A group of n is one columnar execution over n members
(DESIGN §6.2).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import rdflib

import penstock
from benchmarks.harness import Row, shared
from benchmarks.macro import lsbench
from penstock.engine.evaluate import native_start
from penstock.store import _native as native

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "python -m benchmarks closed_loop"
TARGETS = {1: 150_000.0, 64: 500_000.0, 10_000: 1_500_000.0}
_SECONDS = 1.0


def run() -> Iterator[Row]:
    """A row for each rate and group size: the mean of L1-L3."""
    folder = shared("data/lsbench-ids")
    if folder is None:
        return
    sample = lsbench._module(folder / "make_events.py")
    stored = "".join(
        "<{}> <{}> <{}> .\n".format(*map(lsbench._iri, row)) for row in sample.rows("id_mr0_sibdataset.nt")
    )
    for scale in (1, 20):
        with penstock.Engine() as engine:
            engine.load(stored.encode(), format="nt")
            columns = {name: lsbench._columns(sample, name, scale, 20) for name in sample.RATE}
            encoded = lsbench._encoded(engine, columns)
            for name in columns:
                engine.declare_stream(lsbench.STREAMS + name, timing="all" if name == "gps" else ())
            captured = _Captured(engine, folder)
            for name in columns:
                engine.advance(lsbench.STREAMS + name, 0)
            for k in range(1, 21):
                lsbench._push(engine, encoded, 100 * (k - 1), 100 * k)
                engine.advance(None, 100 * k)
            users, persons = _constants(engine, sample)
            for size, target in TARGETS.items():
                rates = [captured.rate(i, size, users if i == 0 else persons) for i in range(3)]
                mean = 3 / sum(1 / rate for rate in rates)
                yield Row(
                    f"Closed loop, L1-L3 at x{scale}, groups of {size}",
                    mean,
                    "executions/s",
                    COMMAND,
                    "Wukong+S",
                    18_000.0,
                    target,
                    lower_is_better=False,
                )


def _constants(engine: penstock.Engine, sample: object) -> tuple[np.ndarray, np.ndarray]:
    """Ids of users and of the persons whose accounts they are (LSBench predicate 18, account_of)."""
    pairs = [(s, o) for s, p, o in sample.rows("id_mr0_sibdataset.nt") if p == 18]  # type: ignore[attr-defined]
    terms = [[rdflib.URIRef(lsbench._iri(pair[i])) for pair in pairs] for i in (0, 1)]
    return engine.encode(terms[0]), engine.encode(terms[1])


class _Captured:
    """Plans and sources of L1-L3 as the engine ran them last, to run again with other constants."""

    def __init__(self, engine: penstock.Engine, folder: object) -> None:
        self._engine = engine
        self._queries = [
            engine.register((folder / "queries" / f"L{i}.rq").read_text())
            for i in (1, 2, 3)  # type: ignore[operator]
        ]

    def rate(self, which: int, size: int, constants: np.ndarray) -> float:
        """Executions a second over random constants, answers counted."""
        runtime = self._engine._runtime
        core = runtime.core
        query = self._queries[which]
        cohort = query._member.cohort
        plan = cohort.group.current_plan(cohort, core, runtime.streams)
        sources = [core.store.view(()), *(window.source for window in cohort.windows)]
        windows = [(native_start(0), 2000) for _ in cohort.windows]
        rng = np.random.default_rng(1)
        members = np.arange(1, size + 1, dtype=np.uint64)
        draws = [rng.choice(constants, size) for _ in range(257)]
        done, rows, began = 0, 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < _SECONDS:
            for draw in draws[: max(1, min(257, 20_000 // size))]:
                result = native.execute(
                    plan.native,
                    core.store,
                    core.dictionary,
                    sources,
                    (members, draw),
                    seed_rows=size,
                    now_ms=2000,
                    windows=windows,
                )
                rows += result.rows
                done += size
        assert rows > 0
        return done / spent
