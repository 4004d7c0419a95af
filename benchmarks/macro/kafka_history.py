"""Queries in the past of a cluster (ADR 107): how much faster than real time they catch up, and the latency of a live
query meanwhile.

One stream has a history of ten events a second, and then events in real time. The queries in the past have a window of
10 s and a step of 1 s. One groups by ten subjects; one returns the 100 triples of the window. A second stream stores
one triple with each event. The third query joins the window of this stream with the stored triples, as of each instant.

A live query reads the last second of the first stream every 100 ms. Its latency is the time from the first event after
t to the committed result of t.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from benchmarks.harness import Row, check, quantile
from benchmarks.macro.kafka_cluster import NAMES, STEP_MS, Paced, running
from penstock.log import START, Partition, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.harness import Finding
    from benchmarks.macro.kafka_cluster import Running
    from penstock.log.kafka import KafkaLog

COMMAND = "python -m benchmarks kafka_history"
SECONDS, RATE, SUBJECTS = 10_000, 10, 10  # of history; events a second
TARGET = 100  # times real time
CALM_S, PATIENCE_S = 8.0, 300.0
IRI, GRAPH_IRI = "http://x/s", "http://x/g"
_WINDOW, _GRAPH_WINDOW = (f"FROM STREAM <{iri}> [RANGE 10s STEP 1s]" for iri in (IRI, GRAPH_IRI))
QUERIES = {
    "GROUP BY": f"SELECT ?s (COUNT(*) AS ?n) {_WINDOW} WHERE {{ ?s <urn:p> ?o }} GROUP BY ?s",
    "window": f"SELECT ?s ?o {_WINDOW} WHERE {{ ?s <urn:p> ?o }}",
    "stored graph": f"SELECT ?s ?o {_GRAPH_WINDOW} FROM <urn:x-penstock:stored> "
    "WHERE { ?s <urn:p> ?o . ?o <urn:of> ?s }",
}
LIVE = f"SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP {STEP_MS}ms] WHERE {{ ?s ?p ?o }}"


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield the rows of each query in the past."""
    seconds = 200 if tiny else SECONDS
    settings = {"retention_ms": 2 * SECONDS * 1000, "idle_timeout_ms": 3_600_000, "max_ahead_ms": 1 << 52}
    with running() as here:
        here.client.declare_stream(IRI, "s", timing="all", **settings)
        here.client.declare_stream(GRAPH_IRI, "g", timing=["urn:p"], graph_history=True, **settings)
        end_ms = _produce(here.log, seconds)
        here.client.register(f"REGISTER QUERY live AS {LIVE}", "live", topic="live")
        live, paced = Instants(here.log, "live"), Paced(here.log, ["s", "g"], RATE)
        playing = threading.Thread(target=paced.play, args=(PATIENCE_S,), daemon=True)
        playing.start()
        live.wait(20)
        time.sleep(CALM_S if not tiny else 1.0)
        live.wait_for(max(paced.passed))
        calm = _latencies(paced, live, CALM_S if not tiny else 1.0)
        yield from _latency("undisturbed", calm)
        for number, (name, text) in enumerate(QUERIES.items()):
            yield from _catch_up(here, f"late{number}", name, text, seconds, end_ms, paced, live)
        paced.stopping.set()
        playing.join()
        live.close()


def _produce(log: KafkaLog, seconds: int) -> int:
    """Produce the history, which ends now. Returns its last full second, in ms."""
    writer, first = log.writer(), (int(time.time()) - seconds) * 1000
    for number in range(seconds * RATE):
        subject, thing = f"<urn:s{number % SUBJECTS}>", f"<urn:o{number}>"
        data = f"{subject} <urn:p> {thing} ."
        headers = (("timestamp", b"%d" % (first + number * 1000 // RATE + 50)),)
        writer.submit(Record(NAMES.events("s"), data.encode(), headers=headers))
        data += f"\n{thing} <urn:of> {subject} ."
        writer.submit(Record(NAMES.events("g"), data.encode(), headers=headers))
        if number % 10_000 == 0:
            writer.flush()
    writer.flush()
    writer.close()
    return first + seconds * 1000


def _catch_up(
    here: Running, query: str, name: str, text: str, seconds: int, end_ms: int, paced: Paced, live: Instants
) -> Iterator[Row]:
    since, started = max(paced.passed), time.perf_counter()
    here.client.register(f"REGISTER QUERY {query} FROM BEGINNING AS {text}", query, topic=query)
    late = Instants(here.log, query)
    late.wait_for(end_ms)
    spent = late.read[end_ms] - started
    caught_up = max(paced.passed)
    late.close()
    here.client.stop(query)
    history = [instant for instant in late.read if instant <= end_ms]
    check(len(history), seconds, f"evaluations of {name}")
    title = f"Cluster, {name}: history of {seconds:,} s"
    yield Row(
        f"{title}, times real time", seconds / spent, "x", COMMAND, target=TARGET, lower_is_better=False, clock="wall"
    )
    live.wait_for(caught_up)
    meanwhile = [
        live.read[t] - paced.passed[t] for t in list(paced.passed) if since < t <= caught_up and t in live.read
    ]
    yield from _latency(f"while {name} catches up", meanwhile)


def _latencies(paced: Paced, live: Instants, seconds: float) -> list[float]:
    since = max(paced.passed)
    time.sleep(seconds)
    until = max(paced.passed)
    live.wait_for(until)
    return [live.read[t] - paced.passed[t] for t in list(paced.passed) if since < t <= until]


def _latency(when: str, latencies: list[float]) -> Iterator[Row]:
    for share in (0.5, 0.99):
        title = f"Cluster: latency of a live query {when}, p{share * 100:.0f} of {len(latencies)}"
        yield Row(title, quantile(latencies, share) * 1000, "ms", COMMAND, clock="wall")


class Instants:
    """The times when the committed results of a query with its own topic were read, by instant. The keys of the records
    have the instants, so that no answer is parsed.
    """

    def __init__(self, log: KafkaLog, topic: str) -> None:
        self.read: dict[int, float] = {}
        self._stop = threading.Event()
        self._reader = log.reader({Partition(topic, i): START for i in range(log.topics()[topic])})
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.is_set():
            for message in self._reader.poll(1000, 0.02):
                self.read[int((message.key or b"").rpartition(b"@")[2])] = time.perf_counter()
        self._reader.close()

    def wait(self, count: int) -> None:
        """Wait for a number of results."""
        self._until(lambda: len(self.read) >= count, f"{count} results")

    def wait_for(self, instant: int) -> None:
        """Wait for the result of an instant."""
        self._until(lambda: instant in self.read, f"the result of {instant}")

    @staticmethod
    def _until(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"no {what} within {PATIENCE_S:g} s")
            time.sleep(0.02)

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join()
