"""In-place execution compared with fork-join (ADR 18): one step over rows, half or all of which are in stores.

The step looks up one neighbour of each of n vertices. The figure is the wall time of the core's execution, since both
ways wait for stores. A commit before each execution makes the engine ask whether its known lists have grown. The number
of rows from which on a fork is faster should equal the planner's figure (`least` in EXPLAIN).
"""

from __future__ import annotations

import re
import statistics
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.core_time import core_times
from benchmarks.harness import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    import penstock
    from benchmarks.harness import Finding
    from penstock.query.planning.cost.placement import Execution
    from penstock.remote import Transport

COMMAND = "python -m benchmarks stores"
SIZES = (16, 64, 256, 1_024, 4_096, 16_384, 65_536)
_STORES = 2
_REPETITIONS = 15


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for both ways over TCP and over shared memory, and for the point where they cross."""
    sizes = SIZES[:2] if tiny else SIZES
    for transport in ("tcp", "shm"):
        times = {way: _times(transport, way, sizes) for way in ("in-place", "fork-join")}
        for size in sizes:
            for way, found in times.items():
                yield Row(
                    f"one step of {size} rows over {_STORES} stores by {transport}, {way}", found[size], "µs", COMMAND
                )
        slower = [n for n in sizes if times["fork-join"][n] >= times["in-place"][n]]
        crossing = {
            "rows from which on fork-join takes less": next((n for n in sizes if n > max(slower, default=0)), 0),
            "rows from which on the planner forks": _planned(transport),
        }
        for what, rows in crossing.items():
            if rows:  # otherwise fork-join is never faster
                yield Row(f"- {what} by {transport}", rows, "rows", COMMAND)


def _times(transport: Transport, way: Execution, sizes: tuple[int, ...]) -> dict[int, float]:
    with _engine(transport, way, sizes) as engine, core_times() as seen:
        times = {}
        for size in sizes:
            for repetition in range(_REPETITIONS):
                engine.update(f"INSERT DATA {{ <urn:nobody> <urn:asks> {size + repetition} }}")
                (row,) = engine.query(_text(size))
                assert int(row["n"]) == size, (row, size, way)
            (spent,) = seen.values()
            times[size] = statistics.median(spent.wall)
            seen.clear()
        return times


def _planned(transport: Transport) -> int:
    with _engine(transport, "auto", SIZES[-1:]) as engine:
        found = re.search(r"nodes from (\d+) rows on", engine.explain(_text(SIZES[-1])))
        return int(found.group(1)) if found else 0


def _text(size: int) -> str:
    return f"SELECT (COUNT(*) AS ?n) {{ ?x <urn:in> <urn:set-{size}> . ?x <urn:next> ?y }}"


@contextmanager
def _engine(transport: Transport, way: Execution, sizes: tuple[int, ...]) -> Iterator[penstock.Engine]:
    """Yield an engine over stores that hold sets of vertices of those sizes; each vertex has one neighbour."""
    from support.engine_over_stores import EngineOverStores  # noqa: PLC0415 - its path is `stores.run`'s
    from support.store_processes import Place, StoreProcesses  # noqa: PLC0415 - likewise

    with StoreProcesses([Place()] * _STORES, _STORES) as stores:
        engine = EngineOverStores(stores, transport=transport, execution=way)
        lines = [f"<urn:v{i}> <urn:next> <urn:v{i + 1}> .\n" for i in range(sizes[-1])]
        lines += [f"<urn:v{i}> <urn:in> <urn:set-{size}> .\n" for size in sizes for i in range(size)]
        engine.load("".join(lines).encode(), format="nt")
        try:
            yield engine
        finally:
            engine.close()
