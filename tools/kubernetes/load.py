"""Events from outside of the cluster, and the comparison of all results with the embedded engine's."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

import penstock
from penstock.cli.cluster.demo_cluster import content
from penstock.engine.answers.json_lines import json_line
from tools.kubernetes.cluster import StepError

if TYPE_CHECKING:
    from penstock import Client

IRI, NAME, GRAPH = "http://x/s", "s", "http://x/g"
BEGIN_MS, EVENT_MS = 1_000_000, 20
_SETTINGS: dict[str, Any] = {"batch_ms": 200, "timing": "all", "max_ahead_ms": 1 << 52, "idle_timeout_ms": 3_600_000}
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_OVER = f"FROM STREAM <{IRI}> [RANGE 2s STEP 1s]"
QUERIES = {
    "busy": f"REGISTER QUERY busy AS SELECT ?s (COUNT(*) AS ?n) (SUM(?v) AS ?sum) {_OVER} "
    "WHERE { ?s <http://x/p> ?v } GROUP BY ?s",
    "fresh": f"REGISTER ISTREAM fresh AS SELECT ?s ?v {_OVER} WHERE {{ ?s <http://x/p> ?v }}",
    "places": f"REGISTER QUERY places AS SELECT ?r (COUNT(*) AS ?n) {_OVER} FROM NAMED <{GRAPH}> "
    f"WHERE {{ ?s <http://x/p> ?v . GRAPH <{GRAPH}> {{ ?s <http://x/in> ?r }} }} GROUP BY ?r",
}
STORED = "".join(f"<http://x/{i}> <http://x/in> <http://x/room{i % 3}> .\n" for i in range(20)).encode()
_RESULTS = "penstock.results"
_QUIET_S = 4.0
_RATE = 50.0  # events per second


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of the results topic with the embedded engine's answers."""

    expected: int
    lost: int
    doubled: int
    different: int

    @property
    def good(self) -> bool:
        """Whether each expected result is there once, and the same."""
        return self.expected > 0 and not (self.lost or self.doubled or self.different)


class Load:
    """A producer of events, which a thread sends at a constant rate."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "delivery.timeout.ms": 300_000}
        )
        self.sent: list[tuple[int, bytes]] = []
        self._undelivered: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def prepare(self, client: Client) -> None:
        """Store the graph, declare the stream and register the queries."""
        client.load(STORED, GRAPH, "nt")
        client.declare_stream(IRI, NAME, **_SETTINGS)
        for name, text in QUERIES.items():
            client.register(text, name)
        self._send(None, [("heartbeat", b"%d" % BEGIN_MS)])

    def start(self) -> None:
        """Begin to send events."""
        self._thread.start()

    def _run(self) -> None:
        now_ms, began = BEGIN_MS, time.monotonic()
        while not self._ended.wait(max(0.0, began + len(self.sent) / _RATE - time.monotonic())):
            now_ms += EVENT_MS
            thing = f"<http://x/{now_ms // EVENT_MS % 20}>"
            data = f'{thing} <http://x/p> "{now_ms}"^^<{_INTEGER}> .\n{thing} <http://x/says> "reading {now_ms}" .'
            self.sent.append((now_ms, data.encode()))
            self._send(data.encode(), [("timestamp", b"%d" % now_ms)])

    def _send(self, data: bytes | None, headers: list[tuple[str, bytes]]) -> None:
        def delivered(error: object, _: object) -> None:
            if error is not None:
                self._undelivered.append(str(error))

        self._producer.produce(f"penstock.events.{NAME}", data, headers=headers, partition=0, on_delivery=delivered)
        self._producer.poll(0)

    def end(self) -> None:
        """Stop sending, and close the last window. StepError if the broker has not received all events."""
        self._ended.set()
        self._thread.join(30.0)
        self._send(None, [("heartbeat", b"%d" % self._end_ms)])
        if self._producer.flush(60.0) or self._undelivered:
            raise StepError(f"events were not delivered: {self._undelivered[:3]}")

    @property
    def _end_ms(self) -> int:
        return (self.sent[-1][0] // 1000 + 3) * 1000

    def verdict(self, limit_s: float = 240.0) -> Verdict:
        """Read all results, and compare them. Waits until all expected ones are there, for at most `limit_s`."""
        expected = self._expected()
        counts: Counter[tuple[str, int]] = Counter()
        different = set()
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap_servers, "group.id": "check", "enable.auto.commit": False}
        )
        partitions = consumer.list_topics(_RESULTS, 30.0).topics[_RESULTS].partitions
        consumer.assign([TopicPartition(_RESULTS, number, OFFSET_BEGINNING) for number in partitions])
        deadline, complete = time.monotonic() + limit_s, None
        while time.monotonic() < deadline and (complete is None or time.monotonic() < complete + _QUIET_S):
            for message in consumer.consume(1000, 0.5):
                if message.error() or message.value() is None:
                    continue
                line = json.loads(message.value())
                key = line["query"], line["time"]
                if line["query"] in QUERIES:
                    counts[key] += 1
                    if expected.get(key) != content(line):
                        different.add(key)
            if complete is None and expected.keys() <= counts.keys():
                complete = time.monotonic()
        consumer.close()
        lost = len(expected.keys() - counts.keys())
        return Verdict(len(expected), lost, sum(n - 1 for n in counts.values()), len(different))

    def _expected(self) -> dict[tuple[str, int], str]:
        found = {}
        with penstock.Engine() as engine:
            engine.load(STORED, graph=GRAPH, format="nt")
            engine.declare_stream(IRI, **_SETTINGS)
            handles = [engine.register(text, name=name) for name, text in QUERIES.items()]
            engine.advance(IRI, BEGIN_MS)
            engine.push_events(IRI, self.sent)
            engine.advance(IRI, self._end_ms)
            for handle in handles:
                for evaluation in handle.poll():
                    found[handle.name, evaluation.time] = content(json.loads(json_line(evaluation)))
        return found
