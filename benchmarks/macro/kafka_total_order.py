"""A log with closed batches of a stream and continuous queries, and engines that read it in this process.

This module is no benchmark. All other services have run and ended before an engine is measured, so processor time is
only the engine's (over Kafka, with the threads of the Kafka client).
"""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import LeftOutError, check
from benchmarks.macro.kafka_cluster import TRIPLES, event
from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.engine.limits import Limits
from penstock.errors import StorageError
from penstock.log import START, MemoryLog, Partition, Record
from penstock.log.clock import SystemClock
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.coordinator.coordinator import Coordinator
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.services.query_engine.query_engine import QueryEngine
from penstock.services.query_engine.replica_checkpoint import ReplicaFactory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log import Log

IRI, BATCH_MS = "http://x/s", 100
_BEGIN_MS = 1_000
_PATIENCE_S = 120.0
_SETTINGS = {"batch_ms": BATCH_MS, "timing": "all", "idle_timeout_ms": 1 << 40, "max_ahead_ms": 1 << 52}


class Took(NamedTuple):
    """Seconds of this process's processor time, and of wall time."""

    cpu_s: float
    wall_s: float


@contextmanager
def kafka() -> Iterator[Log]:
    """Yield a log on a new broker."""
    try:
        from penstock.broker import Broker  # noqa: PLC0415 - the cluster extra may be absent
        from penstock.log.kafka.kafka_log import KafkaLog  # noqa: PLC0415
    except ImportError as error:
        raise LeftOutError(f"the cluster extra is not installed: {error}") from error
    with tempfile.TemporaryDirectory() as folder:
        try:
            broker = Broker(Path(folder, "broker")).start()
        except StorageError as error:
            raise LeftOutError(str(error)) from error
        log = KafkaLog(broker.bootstrap_servers)
        try:
            yield log
        finally:
            log.close()
            broker.stop()


@dataclass(slots=True)
class Sequencer:
    """The log of a cluster: `queries` queries, each for one thing over the last second, and closed batches."""

    log: Log
    queries: int
    per_batch: int
    batches: int = 0
    clock: SystemClock = field(default_factory=SystemClock)
    topics: ClusterTopics = field(init=False)
    terms: DictionaryService = field(init=False)
    _coordinator: Coordinator = field(init=False)

    def __post_init__(self) -> None:
        self.topics = ClusterTopics(TopicNames("alone"), shards=2, buckets=2)
        self.log.create(self.topics.all())
        self.terms = DictionaryService(self.log, self.topics)
        self._coordinator = Coordinator(self.log, self.topics, "c", self.terms, self.clock)
        _until(lambda: self._coordinator.step(0.01) or self._coordinator.active, "a coordinator is active")
        _until(lambda: self._coordinator.active, "a coordinator is active")
        self._coordinator.declare(IRI, "s", **_SETTINGS)
        window = f"FROM STREAM <{IRI}> [RANGE 1s STEP {BATCH_MS}ms]"
        for i in range(self.queries):
            text = f"REGISTER QUERY q{i} AS SELECT ?o {window} WHERE {{ <http://x/thing/{i}> <http://x/p0> ?o }}"
            self._coordinator.register(f"q{i}", text)
        self._close(_BEGIN_MS, [])

    def extend(self, batches: int) -> None:
        """Close `batches` more batches."""
        first = self.batches
        self.batches += batches
        events = [
            (_BEGIN_MS + number * BATCH_MS + 1 + i * (BATCH_MS - 2) // self.per_batch, number * self.per_batch + i)
            for number in range(first, self.batches)
            for i in range(self.per_batch)
        ]
        self._close(self.end_ms, events)

    @property
    def end_ms(self) -> int:
        """Return the time up to which all batches are closed."""
        return _BEGIN_MS + self.batches * BATCH_MS

    def _close(self, until_ms: int, events: list[tuple[int, int]]) -> None:
        names = self.topics.names
        adaptor = Adaptor(self.log, names, self.terms, names.adaptor_group)
        dispatcher = Dispatcher(self.log, names, self.topics.shards, self.clock, names.adaptor_group)
        topic = names.events("s")
        writer = self.log.writer()
        made = [Record(topic, event(number), headers=(("timestamp", b"%d" % time),)) for time, number in events]
        writer.append([*made, Record(topic, None, headers=(("heartbeat", b"%d" % until_ms),))])
        last = until_ms // BATCH_MS - 1

        def closed() -> bool:
            adaptor.step(0.01)
            dispatcher.step(0.01)
            stream = dispatcher.streams.get(IRI)
            return stream is not None and stream.closed is not None and stream.closed >= last

        _until(closed, "the last batch closes")
        for each in (adaptor, dispatcher, writer):
            each.close()

    # ---- engines
    def run(self, name: str, directory: Path | None = None, checkpoint_every: int = 0, *, save: bool = True) -> Took:
        """Run an engine to the end of the log, checkpoint it (`save`) and stop it. Return the time to the end."""
        cpu, wall = time.process_time(), time.perf_counter()
        checkpoints = None if directory is None else DataDirectory(directory, read_only=False)
        rng = random.Random(0)
        factory = ReplicaFactory(checkpoints, self.terms, self.topics.shards, Limits(), self.clock.now_ms, rng)
        engine = QueryEngine(self.log, self.topics, name, factory, self.clock)
        replica = engine.replica
        spent = Took(time.process_time() - cpu, time.perf_counter() - wall)
        _until(lambda: self._placed(engine, name), "an engine has the buckets")
        cpu, wall, saved = time.process_time(), time.perf_counter(), replica.history.step
        deadline = time.monotonic() + _PATIENCE_S
        while not (engine.caught_up() and self._done(replica)):
            engine.step(0.0 if isinstance(self.log, MemoryLog) else 0.005)
            if checkpoint_every and replica.history.step - saved >= checkpoint_every:
                factory.save(replica)
                saved = replica.history.step
            check(time.monotonic() < deadline, True, "the engine reaches the end of the log")
        took = Took(time.process_time() - cpu + spent.cpu_s, time.perf_counter() - wall + spent.wall_s)
        if checkpoints is not None:
            if save:
                factory.save(replica)
            checkpoints.close(clean=True)
        engine.close()
        return took

    def _placed(self, engine: QueryEngine, name: str) -> bool:
        """Step the coordinator and send the engine's heartbeats, until the engine has all buckets."""
        engine._heartbeat_sender.beat()
        self._coordinator.step(0.01)
        mine = engine._placement.buckets_of(name)
        return mine is not None and len(mine) == self.topics.buckets

    def _done(self, replica: object) -> bool:
        streams = replica.runtime.streams  # type: ignore[attr-defined]
        return IRI in streams and (streams.get(IRI).closed_ms or 0) >= self.end_ms

    def results(self, expected: int) -> int:
        """Return how many evaluations are committed. Kafka may show them some time after a commit, so this waits for
        `expected`.
        """
        names = {Partition(self.topics.names.results, i): START for i in range(self.topics.result_partitions)}
        reader = self.log.reader(names)
        count, deadline = 0, time.monotonic() + _PATIENCE_S
        while (messages := reader.poll(100_000, 1.0)) or (count < expected and time.monotonic() < deadline):
            count += len(messages)
        reader.close()
        return count

    @property
    def tuples_a_batch(self) -> int:
        """Return the number of tuples in a batch."""
        return self.per_batch * TRIPLES


def _until(done: object, what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not done():  # type: ignore[operator]
        check(time.monotonic() < deadline, True, what)
