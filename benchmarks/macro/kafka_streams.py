"""The cost of a cluster by the number of its streams: processor time of each service and memory, idle and with data.

One cluster, to which streams are added. With data: each stream gets one event a second, in real time, and a continuous
query counts the tuples of the first stream. Idle: nobody sends events, so the dispatcher moves every stream with the
clock (docs/semantics.md §2), batch by batch.
"""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING

from benchmarks.harness import Row, check
from benchmarks.macro.kafka_cluster import NAMES, STEP_MS, TRIPLES, Paced, Results, Running, running
from benchmarks.macro.processes import processor_s_of
from penstock.log import Partition, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks kafka_streams"
STREAMS = (1, 100, 1_000)
IDLE_S, SECONDS, SETTLE_S, IDLE_MS, READY_S = 5.0, 10.0, 3.0, 3_000, 300.0
BUSY_IDLE_MS = 10_000
"""The idle timeout when other tests run: a producer without a processor must not count as idle."""
SERVICES = ("adaptor", "dispatcher", "engine", "store", "coordinator", "broker")


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows, by the number of streams."""
    names: list[str] = []
    idle_ms = BUSY_IDLE_MS if tiny else IDLE_MS
    settings = {"batch_ms": STEP_MS, "timing": "all", "idle_timeout_ms": idle_ms}
    with running() as here:
        for count in (1, 5) if tiny else STREAMS:
            fresh = {f"n{i}": {"iri": f"http://x/n{i}", **settings} for i in range(len(names), count)}
            began = time.perf_counter()
            here.client.declare_streams(fresh)
            took_ms = (time.perf_counter() - began) * 1000 / len(fresh)
            names += fresh
            title = f"Cluster of {len(names)} streams"
            yield Row(f"{title}: declaring a stream, {len(fresh)} at once", took_ms, "ms", COMMAND, clock="wall")
            yield Row(f"{title}: until the broker has their topics", _usable_s(here, fresh), "s", COMMAND, clock="wall")
            yield from _cost(here, names, idle_ms / 1000, 1.0 if tiny else IDLE_S, 2.0 if tiny else SECONDS)


def _usable_s(here: Running, names: Iterable[str]) -> float:
    """Wait until the broker leads each partition, and return the seconds: it reports topics as created before they are
    usable.
    """
    began = time.perf_counter()
    topics = [Partition(topic(name)) for topic in (NAMES.events, NAMES.tuples) for name in names]
    while True:
        try:
            here.log.spans(topics)
            return time.perf_counter() - began
        except TransientError:
            check(time.perf_counter() - began < READY_S, True, "topics can be used in time")


def _cost(here: Running, names: list[str], idle_s: float, idle_time_s: float, seconds: float) -> Iterator[Row]:
    title = f"Cluster of {len(names)} streams"
    query = f"count{len(names)}"
    window = f"FROM STREAM <http://x/{names[0]}> [RANGE 1s STEP 1s]"
    here.client.register(f"REGISTER QUERY {query} AS SELECT (COUNT(*) AS ?n) {window} WHERE {{ ?s ?p ?o }}", query)
    results = Results(here.log, query)
    try:
        paced = Paced(here.log, names, 1, step_ms=1_000)
        producer = Thread(target=paced.play, args=(SETTLE_S + seconds + SETTLE_S,), daemon=True)
        producer.start()
        time.sleep(SETTLE_S)
        costs = _spent(here, lambda: time.sleep(seconds))
        producer.join()
        check(results.wait(max(paced.passed)), True, f"{title}: the last result comes")
        # An idle stream moves with the others, so its first events may be late: counting begins when all streams have
        # events.
        for t in sorted(paced.passed)[1 + int(SETTLE_S) :]:
            counted = results.lines[t]["results"]["bindings"][0]["n"]["value"]  # type: ignore[index,call-overload]
            check(int(counted), TRIPLES, f"{title}: tuples of the second before {t}")
        behind_s = results.read[max(paced.passed)] - max(paced.passed.values())
        time.sleep(idle_s + SETTLE_S)
        idle = _spent(here, lambda: time.sleep(idle_time_s))
    finally:
        results.close()
    here.client.stop(query)
    for service in SERVICES:
        yield Row(f"{title}, an event a second each: {service}", costs[service] / seconds, "s/s", COMMAND, clock="cpu")
    yield Row(f"{title}, an event a second each: last event to its result", behind_s, "s", COMMAND, clock="wall")
    for service in SERVICES:
        yield Row(f"{title}, all idle: {service}", idle[service] / idle_time_s, "s/s", COMMAND, clock="cpu")
    for service, megabytes in here.memory_mb().items():
        yield Row(f"{title}: memory of {service}", megabytes, "MB", COMMAND)


def _spent(here: Running, work: Callable[[], object]) -> dict[str, float]:
    before = _costs(here)
    work()
    return {name: spent - before[name] for name, spent in _costs(here).items() if name in SERVICES}


def _costs(here: Running) -> dict[str, float]:
    return here.cpu_by_service() | {"broker": processor_s_of(here.broker)}
