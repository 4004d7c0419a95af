"""A cluster's stored graph in its stores or in each engine: the engines' memory, and the latency of a join with it.

Stored triples tell which things know which. A stream tells which things speak, a hundred a second, and a continuous
query returns every 100 ms whom the acquaintances of the speakers know. One of two engines has the query.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from benchmarks.harness import Row, check, quantile
from benchmarks.macro.kafka_cluster import STEP_MS, Paced, Results, Running, running
from penstock.engine.answers.answer_values import Solutions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks kafka_graph"
THINGS, KNOWN, PART = 100_000, 10, 100_000
SECONDS, WARM_S, SETTLE_S = 12.0, 4.0, 120.0
_KNOWS, _IRI = "<http://x/knows>", "http://x/said"
_QUERY = (
    f"REGISTER QUERY said AS SELECT (COUNT(*) AS ?n) FROM STREAM <{_IRI}> [RANGE 1s STEP {STEP_MS}ms] "
    "FROM <http://x/g> "
    f"WHERE {{ ?s <http://x/p0> ?v . ?s {_KNOWS} ?o . ?o {_KNOWS} ?t }}"
)


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows with two stores, then without stores."""
    for stores, where in ((2, "in two stores"), (0, "in each engine")):
        with running(stores=stores, engines=2) as here:
            yield from _with(here, where, THINGS // 100 if tiny else THINGS, SECONDS / 4 if tiny else SECONDS)


def _with(here: Running, where: str, things: int, seconds: float) -> Iterator[Row]:
    empty = here.own_memory_mb()["engine"]
    count = _load(here, things)
    title = f"Cluster: {count:,} stored triples {where}"
    held = here.own_memory_mb()["engine"]
    yield Row(f"{title}: memory of two engines beyond that of empty ones", held - empty, "MB", COMMAND)
    here.client.declare_stream(_IRI, "said", batch_ms=STEP_MS, timing="all", idle_timeout_ms=3_600_000)
    here.client.register(_QUERY, "said")
    results = Results(here.log, "said")
    try:
        paced = Paced(here.log, ["said"], 10)
        paced.play(WARM_S)
        results.wait(max(paced.passed))
        paced.passed.clear()
        cpu_s = here.cpu_by_service()["engine"]
        paced.play(seconds)
        check(results.wait(max(paced.passed)), True, "the last result comes")
        cpu_s = here.cpu_by_service()["engine"] - cpu_s
    finally:
        results.close()
    spent = [(results.read[t] - passed) * 1000 for t, passed in paced.passed.items()]
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        yield Row(f"{title}: event to committed result, {name}", quantile(spent, share), "ms", COMMAND, clock="wall")
    yield Row(f"{title}: processor time of both engines a second", cpu_s / seconds, "s", COMMAND, clock="cpu")


def _load(here: Running, things: int) -> int:
    """Load the graph, and wait until a one-shot query sees it."""
    rng = random.Random(1)
    edges = sorted({(s, rng.randrange(things)) for s in range(things) for _ in range(KNOWN)})
    lines = [f"<http://x/thing/{s}> {_KNOWS} <http://x/thing/{o}> ." for s, o in edges]
    for first in range(0, len(lines), PART):
        here.client.load("\n".join(lines[first : first + PART]).encode(), "http://x/g", "nt")
    ask = f"SELECT (COUNT(*) AS ?n) FROM <http://x/g> WHERE {{ ?s {_KNOWS} ?o }}"
    deadline = time.monotonic() + SETTLE_S
    while _counted(here, ask) < len(edges):
        if time.monotonic() > deadline:
            check(_counted(here, ask), len(edges), "stored triples that a query sees")
        time.sleep(0.5)
    return len(edges)


def _counted(here: Running, ask: str) -> int:
    answer = here.client.query(ask)
    assert isinstance(answer, Solutions)
    return int(next(iter(answer))["n"])
