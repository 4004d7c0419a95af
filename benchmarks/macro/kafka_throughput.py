"""How many events a second a cluster processes, from Kafka through adaptor, dispatcher and engine to committed results.

The backlog of one stream is produced at once, with a fixed number of events in each millisecond of event time, and then
the heartbeat that closes the last batch. The time is that from the first event to the last committed result, with all
services, the broker and the producer on this machine. Every window's count is checked.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.harness import Row, check
from benchmarks.macro.kafka_cluster import NAMES, TRIPLES, Results, event, running
from penstock.log import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding
    from benchmarks.macro.kafka_cluster import Running

COMMAND = "python -m benchmarks kafka_throughput"
EVENTS, WARM = 300_000, 20_000
PER_MS = 20  # 8,000 tuples a batch of 100 ms
BEGIN_MS = 1_000
SETTINGS = {"batch_ms": 100, "timing": "all", "idle_timeout_ms": 3_600_000, "max_ahead_ms": 1 << 52}


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for the rate, and for each service's processor time for an event."""
    events, warm = (4_000, 2_000) if tiny else (EVENTS, WARM)
    with running() as here:
        here.client.declare_stream("http://x/t", "t", **SETTINGS)
        window = "FROM STREAM <http://x/t> [RANGE 100ms STEP 100ms]"
        here.client.register(
            f"REGISTER QUERY counted AS SELECT (COUNT(*) AS ?n) {window} WHERE {{ ?s ?p ?o }}", "counted"
        )
        results = Results(here.log, "counted", patience_s=120.0)
        try:
            here.client.advance("t", BEGIN_MS)
            _backlog(here, results, 0, warm)
            cpu = here.cpu_by_service()
            took_s = _backlog(here, results, warm, events)
            cpu = {name: spent - cpu[name] for name, spent in here.cpu_by_service().items()}
        finally:
            results.close()
    for t in sorted(results.lines):
        counted = results.lines[t]["results"]["bindings"][0]["n"]["value"]  # type: ignore[index,call-overload]
        check(int(counted), PER_MS * 100 * TRIPLES, f"tuples of the 100 ms before {t}")
    check(len(results.lines), (warm + events) // PER_MS // 100, "evaluations")
    yield Row(
        "Cluster: events a second, from the first to its last result", events / took_s, "/s", COMMAND, clock="wall"
    )
    yield Row("Cluster: tuples a second, the same", events * TRIPLES / took_s, "/s", COMMAND, clock="wall")
    for service in ("adaptor", "dispatcher", "engine", "store", "dictionary"):
        title = f"Cluster: an event of {TRIPLES} triples in a backlog, {service}"
        yield Row(title, cpu[service] / events * 1e6, "µs", COMMAND, clock="cpu")


def _backlog(here: Running, results: Results, first: int, count: int) -> float:
    """Produce `count` events, and wait for their last result. Returns seconds."""
    topic = NAMES.events("t")
    began = time.perf_counter()
    records = [
        Record(topic, event(number), headers=(("timestamp", b"%d" % (BEGIN_MS + 1 + number // PER_MS)),))
        for number in range(first, first + count)
    ]
    made_s = time.perf_counter() - began
    writer = here.log.writer()
    writer.append(records)
    end_ms = BEGIN_MS + (first + count) // PER_MS
    here.client.advance("t", end_ms)
    check(results.wait(end_ms), True, "the last result comes")
    writer.close()
    return time.perf_counter() - began - made_s
