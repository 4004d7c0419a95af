"""A cluster of processes under load: events of one stream, and the embedded engine's answers to them."""

from __future__ import annotations

import json
import time
from collections import Counter
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

import penstock
from penstock.cli.cluster.demo_cluster import content
from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.engine.answers.json_lines import json_line
from penstock.engine.answers.record_lines import lines_of
from penstock.log import START, Partition, Record, Topic
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from penstock.wire import decode
from support.held_rows import HeldRows, result_format

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from penstock.client import Client
    from penstock.wire import Tuples

INTEGER = b"http://www.w3.org/2001/XMLSchema#integer"
IRI, BEGIN, BOUND_S = "http://x/s", 1_000, 400.0
RATE_S, STUCK_S = 60.0, 120.0
"""Events per second that `Producing` produces, and the longest time in s in which it may produce none."""
EVENT_MS = 7
"""Event time between two events, in ms."""
SETTINGS = {"timing": "all", "max_ahead_ms": 1 << 52, "idle_timeout_ms": 3_600_000}
QUERIES = {
    "busy": f"REGISTER QUERY busy AS SELECT ?s (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 500ms] "
    "WHERE { ?s <http://x/p> ?v } GROUP BY ?s",
    "fresh": f"REGISTER ISTREAM fresh AS SELECT ?s ?v FROM STREAM <{IRI}> [RANGE 2s STEP 1s] WHERE {{ ?s <http://x/p> ?v }}",
}


def reading(time_ms: int) -> bytes:
    """Return N-Triples of one event: a value of one of five things, and a term that no other event has."""
    thing = b"<http://x/%d>" % (time_ms % 5)
    return b'%s <http://x/p> "%d"^^<%s> .\n%s <http://x/says> "reading %d" .' % (
        thing,
        time_ms,
        INTEGER,
        thing,
        time_ms,
    )


class Load:
    """Events of one stream with several partitions, and the embedded engine's answers to them."""

    def __init__(
        self,
        bootstrap_servers: str,
        prefix: str,
        partitions: int = 1,
        queries: Mapping[str, str] = QUERIES,
        graphs: Mapping[str | None, bytes] | None = None,
        settings: Mapping[str, Any] = SETTINGS,
        event: Callable[[int], bytes] | None = None,
        changing: Collection[str] = (),
    ) -> None:
        """`event`: gives the N-Triples of the event at a time; None = `reading`. `changing`: the names of the queries
        that are registered with `changes`; `check` applies their added and removed rows.
        """
        self.changing = changing
        self.settings = settings
        self.event = event or reading
        self.queries, self.graphs = dict(queries), graphs or {}
        self.points: dict[str, int] = {}  # registration points of queries that came later
        self.names, self.partitions = TopicNames(prefix), partitions
        self.log = KafkaLog(bootstrap_servers)
        self.log.create([Topic(self.names.events("s"), partitions)])
        self.writer = self.log.writer()
        self.sent: list[tuple[int, bytes]] = []
        self.now = BEGIN

    def prepare(self, client: Client, *, json_only: bool = False) -> None:
        for graph, data in self.graphs.items():
            client.load(data, graph, "nt")
        client.declare_stream(IRI, "s", **self.settings)
        for name, text in self.queries.items():
            record_format = "json" if json_only else result_format(text)
            client.register(text, name, changes=name in self.changing, result_format=record_format)
        self.beat(BEGIN)

    def register(self, client: Client, name: str, text: str) -> None:
        """Register a query while events come, and remember where it begins."""
        client.register(text, name)
        self.wait(lambda: client.registration_point(name) is not None, "a registration point")
        self.points[name], self.queries[name] = client.registration_point(name) or 0, text

    @staticmethod
    def wait(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + BOUND_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {BOUND_S} s: {what}"
            time.sleep(0.1)

    def beat(self, time_ms: int) -> None:
        topic, header = self.names.events("s"), (("heartbeat", b"%d" % time_ms),)
        self.writer.append([Record(topic, None, None, i, header) for i in range(self.partitions)])

    def push(self, count: int, seconds: float = 0.0) -> None:
        """Produce `count` events, spread over `seconds`."""
        for _ in range(count):
            self.writer.append([self._next()])
            time.sleep(seconds / count)

    def push_together(self, count: int) -> None:
        """Produce `count` events at once."""
        self.writer.append([self._next() for _ in range(count)])

    def _next(self) -> Record:
        self.now += EVENT_MS
        data = self.event(self.now)
        self.sent.append((self.now, data))
        headers = (("timestamp", b"%d" % self.now),)
        return Record(self.names.events("s"), data, None, len(self.sent) % self.partitions, headers)

    def garbage(self, data: bytes) -> None:
        self.writer.append([Record(self.names.events("s"), data, None, 0, (("timestamp", b"%d" % self.now),))])

    def end(self) -> int:
        end_ms = (self.now // 1000 + 2) * 1000
        self.beat(end_ms)
        return end_ms

    def expected(self, end_ms: int) -> dict[tuple[str, int], str]:
        found = {}
        with penstock.Engine() as engine:
            for graph, data in self.graphs.items():
                engine.load(data, graph=graph, format="nt")
            engine.declare_stream(IRI, **self.settings)
            handles = [self._registered(engine, name) for name in self.queries]
            engine.advance(IRI, BEGIN)
            engine.push_events(IRI, self.sent)
            engine.advance(IRI, end_ms)
            for handle in handles:
                for evaluation in handle.poll():
                    found[handle.name, evaluation.time] = content(json.loads(json_line(evaluation)))
        return found

    def _registered(self, engine: penstock.Engine, name: str) -> penstock.Query:
        """Register a query that begins at the same instant as in the cluster."""
        registry = engine._runtime.registry
        own = registry.registration_point
        if name in self.points:
            registry.registration_point = lambda _: self.points[name]
        try:
            return engine.register(self.queries[name], name=name)
        finally:
            registry.registration_point = own

    def tuples(self) -> list[Tuples]:
        """Return the records of tuples that adaptors wrote."""
        topic = self.names.tuples("s")
        reader = self.log.reader({Partition(topic, i): START for i in range(self.partitions)})
        found = []
        while not reader.caught_up():
            found += [decode(message.value) for message in reader.poll(1000, 0.2)]
        reader.close()
        return found

    def check(self, cluster: LocalCluster) -> int:
        """Check that the cluster's answers equal the expected ones, each written once. Returns the number of
        evaluations.
        """
        expected = self.expected(self.end())
        assert sum("http://x/1" in answer for answer in expected.values()) > 2, "there is something to answer"
        got, counts = self.results(cluster, lambda got: got.keys() >= expected.keys())
        assert not expected.keys() - got.keys(), "lost"
        assert got == expected
        assert set(counts.values()) == {1}, "doubled"
        return len(expected)

    def results(
        self, cluster: LocalCluster, enough: Callable[[dict[tuple[str, int], str]], bool]
    ) -> tuple[dict[tuple[str, int], str], Counter[tuple[str, int]]]:
        """Read the cluster's answers until there are enough of them, or until `BOUND_S` has passed. Returns what they
        contain, and how often each of them was written, by query and instant.
        """
        got: dict[tuple[str, int], str] = {}
        counts: Counter[tuple[str, int]] = Counter()
        held = {name: HeldRows() for name in self.queries}
        reader = self.log.reader({Partition(self.names.results, i): START for i in range(4)})
        deadline = time.monotonic() + BOUND_S
        while not enough(got) and time.monotonic() < deadline:
            cluster.watch()
            for message in reader.poll(1000, 0.2):
                for written in lines_of(message.value, message.headers, self.queries.__contains__):
                    name = written["query"]  # the others are those of another test
                    line = held[name].apply(dict(written))
                    counts[name, line["time"]] += 1
                    got[name, line["time"]] = content(line)
        reader.close()
        return got, counts

    def letters(self) -> list:
        reader = self.log.reader({Partition(self.names.dead_letter): START})
        found = []
        while not reader.caught_up():
            found += reader.poll(1000, 0.2)
        reader.close()
        return found


class Producing:
    """Events that go on coming from a thread of its own, until the block ends."""

    def __init__(self, load: Load) -> None:
        self._load, self._stop = load, Event()
        self._thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._load.push(1, 1 / RATE_S)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + STUCK_S
        while len(self._load.sent) < count:
            assert self._thread.is_alive(), "the producer has failed"
            assert time.monotonic() < deadline
            time.sleep(0.005)


def small(bootstrap_servers, prefix, directory, **counts) -> LocalCluster:
    counts = {"dictionaries": 1, "coordinators": 1, "engines": 1} | counts
    return LocalCluster(bootstrap_servers, directory, prefix=prefix, buckets=2, shards=2, **counts)
