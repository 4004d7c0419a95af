"""How long there are no results when an engine or a store ends in order or joins, by the size of the stored graph.

There are two engines and two stores. Each query has an instant every 100 ms, and joins its window with the stored
graph. A silence is the longest time between two committed results of a query, as a consumer sees them, less those 100
ms. The silence of an undisturbed period of the same length is given for comparison.
"""

from __future__ import annotations

import signal
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.harness import Row
from benchmarks.macro.kafka_cluster import STEP_MS, Paced, Results, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding
    from benchmarks.macro.kafka_cluster import Running

COMMAND = "python -m benchmarks kafka_handover"
IRI, GRAPH = "http://x/s", "http://x/stored"
TRIPLES = (10_000, 2_000_000)
PER_STEP, THINGS, CHUNK = 10, 1_000, 100_000
PERIOD_S, FIRST_S, END_S = 10.0, 60.0, 20.0
VICTIMS = ("engine-0", "store-0", "engine-1", "store-1")
QUERIES = {
    f"q{i}": f"REGISTER QUERY q{i} AS SELECT ?s ?v ?kind FROM STREAM <{IRI}> [RANGE {i}s STEP {STEP_MS}ms] "
    f"FROM <{GRAPH}> WHERE {{ ?s <http://x/p0> ?v . ?s <http://x/kind> ?kind }}"
    for i in (1, 2)
}


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows, by the number of stored triples."""
    for triples in (1_000,) if tiny else TRIPLES:
        with running(engines=2, stores=2) as made:
            found = _play(made, triples, 2.0 if tiny else PERIOD_S, VICTIMS[:1] if tiny else VICTIMS)
        calm = found.pop("undisturbed")
        for what, silence in found.items():
            yield Row(f"Handover, {triples:,} stored triples: {what}", silence, "s", COMMAND, clock="wall")
        yield Row(f"Handover, {triples:,} stored triples: undisturbed", calm, "s", COMMAND, clock="wall")


def _play(made: Running, triples: int, period_s: float, victims: tuple[str, ...]) -> dict[str, float]:
    """Return the longest silence of each period."""
    client = made.client
    client.declare_stream(IRI, "s", timing="all")
    for first in range(0, triples, CHUNK):
        lines = (
            f"<http://x/thing/{i % THINGS if i < THINGS else i}> <http://x/kind> <http://x/kind/{i % 7}> ."
            for i in range(first, min(first + CHUNK, triples))
        )
        client.load("\n".join(lines).encode(), GRAPH, "nt")
    for name, text in QUERIES.items():
        client.register(text, name)
    paced = Paced(made.log, ["s"], PER_STEP)
    seconds = FIRST_S + (2 * len(victims) + 1) * (period_s + 2.0)
    playing = threading.Thread(target=paced.play, args=(seconds,), daemon=True)
    results = [Results(made.log, name) for name in QUERIES]
    playing.start()
    deadline = time.monotonic() + FIRST_S
    while any(len(each.read) < 50 for each in results):
        if time.monotonic() > deadline:
            raise RuntimeError(f"no results within {FIRST_S:g} s")
        time.sleep(0.1)
    _checkpointed(period_s)
    found = {"undisturbed": _silence(results, period_s)}
    for name in victims:
        process = made.cluster.services[name].process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        kind = "an engine" if name.startswith("engine") else "a store"
        _worst(found, f"SIGTERM of {kind}", _silence(results, period_s))
        process.wait(END_S)
        made.cluster.watch()
        _worst(found, f"{kind} joins", _silence(results, period_s))
        _await_start(made, name)
    paced.stopping.set()
    playing.join()
    for each in results:
        each.close()
    return found


def _checkpointed(period_s: float) -> None:
    """Wait until every store has made a checkpoint of the loaded triples: it makes one every 5 s."""
    time.sleep(period_s)


def _await_start(made: Running, name: str) -> None:
    """Wait until a service runs, so that the next one has a successor."""
    supervisor, deadline = made.cluster.supervisor, time.monotonic() + FIRST_S
    while not any(record.get("event") == "started" for record in supervisor.records(supervisor.services[name])):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{name} has not started within {FIRST_S:g} s")
        time.sleep(0.5)


def _worst(found: dict[str, float], what: str, silence: float) -> None:
    found[what] = max(silence, found.get(what, silence))


def _silence(results: list[Results], period_s: float) -> float:
    begin = time.perf_counter()
    time.sleep(period_s)
    end = time.perf_counter()
    gaps = []
    for each in results:
        within = [begin, *sorted(moment for moment in list(each.read.values()) if begin < moment < end), end]
        gaps += [later - earlier for earlier, later in pairwise(within)]
    return max(gaps) - STEP_MS / 1000
