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
from penstock.engine.answers.record_lines import format_of, lines_of
from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.engine.limits import Limits
from penstock.errors import StorageError
from penstock.log import START, MemoryLog, Partition, Record
from penstock.log.clock import SystemClock
from penstock.log.topics import TopicNames
from penstock.mapping.encodings.schema_registration import SchemaRegistration
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.coordinator.coordinator import Coordinator
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.services.query_engine.query_engine import QueryEngine
from penstock.services.query_engine.replica_checkpoint import ReplicaFactory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log import Log, Message

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


class _Schemas(SchemaRegistration):
    """Ids of schemas, without a schema registry."""

    def __init__(self) -> None:
        super().__init__(None)
        self._ids: dict[str, int] = {}

    def id_of(self, _: str, schema: str) -> int:
        return self._ids.setdefault(schema, len(self._ids) + 1)


@dataclass(slots=True)
class Sequencer:
    """The log of a cluster: `queries` queries, each for one thing over the last second, and closed batches. Queries
    with records in Avro have a results topic of their own.
    """

    log: Log
    queries: int
    per_batch: int
    result_format: str = "json"
    batches: int = 0
    clock: SystemClock = field(default_factory=SystemClock)
    topics: ClusterTopics = field(init=False)
    terms: DictionaryService = field(init=False)
    _coordinator: Coordinator = field(init=False)

    def __post_init__(self) -> None:
        self.topics = ClusterTopics(TopicNames("alone"), shards=2, buckets=2)
        self.log.create(self.topics.all())
        self.terms = DictionaryService(self.log, self.topics)
        self._coordinator = Coordinator(self.log, self.topics, "c", self.terms, self.clock, schemas=_Schemas())
        _until(lambda: self._coordinator.step(0.01) or self._coordinator.active, "a coordinator is active")
        _until(lambda: self._coordinator.active, "a coordinator is active")
        self._coordinator.declare(IRI, "s", **_SETTINGS)
        window = f"FROM STREAM <{IRI}> [RANGE 1s STEP {BATCH_MS}ms]"
        topic = self._rows_topic if self.result_format == "avro" else None
        for i in range(self.queries):
            text = f"REGISTER QUERY q{i} AS SELECT ?o {window} WHERE {{ <http://x/thing/{i}> <http://x/p0> ?o }}"
            self._coordinator.register(f"q{i}", text, topic=topic, result_format=self.result_format)
        self._close(_BEGIN_MS, [])

    @property
    def _rows_topic(self) -> str:
        return f"{self.topics.names.results}.rows"

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
        engine = Engine(self, name, directory, checkpoint_every)
        took = engine.to_end()
        engine.close(save=save)
        return Took(took.cpu_s + engine.start.cpu_s, took.wall_s + engine.start.wall_s)

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
        return len(self.evaluations(expected)[1])

    def evaluations(self, expected: int) -> tuple[list[Message], list[tuple[str, int]]]:
        """Return the committed results records, and the (query, time) of each evaluation in them. Waits for `expected`
        evaluations.
        """
        names = {Partition(self.topics.names.results, i): START for i in range(self.topics.result_partitions)}
        if self.result_format == "avro":
            names = {Partition(self._rows_topic): START}
        reader = self.log.reader(names)
        read: list[Message] = []
        found: list[tuple[str, int]] = []
        deadline = time.monotonic() + _PATIENCE_S
        while (messages := reader.poll(100_000, 1.0)) or (len(found) < expected and time.monotonic() < deadline):
            read += messages
            for message in messages:
                found += _evaluations(message)
        reader.close()
        return read, found

    @property
    def tuples_a_batch(self) -> int:
        """Return the number of tuples in a batch."""
        return self.per_batch * TRIPLES


def _evaluations(message: Message) -> list[tuple[str, int]]:
    """Return the (query, time) of each evaluation in a results record. In Avro, only the first row counts."""
    if format_of(message.headers) != "avro":
        return [(line["query"], line["time"]) for line in lines_of(message.value or b"", message.headers)]
    query, _, rest = (message.key or b"").decode().rpartition("@")
    return [] if "/" in rest else [(query, int(rest))]


class Engine:
    """A query engine over the log of a `Sequencer`. `start`: what its creation took."""

    def __init__(
        self, sequencer: Sequencer, name: str, directory: Path | None = None, checkpoint_every: int = 0
    ) -> None:
        self._sequencer, self._every = sequencer, checkpoint_every
        cpu, wall = time.process_time(), time.perf_counter()
        self._checkpoints = None if directory is None else DataDirectory(directory, read_only=False)
        shards, clock, rng = sequencer.topics.shards, sequencer.clock, random.Random(0)
        self._factory = ReplicaFactory(self._checkpoints, sequencer.terms, shards, Limits(), clock.now_ms, rng)
        self._engine = engine = QueryEngine(sequencer.log, sequencer.topics, name, self._factory, clock)
        self.start = Took(time.process_time() - cpu, time.perf_counter() - wall)
        _until(lambda: sequencer._placed(engine, name), "an engine has the buckets")

    def to_end(self) -> Took:
        """Run to the end of the log. Return the time that this takes, with checkpoints."""
        engine, replica, sequencer = self._engine, self._engine.replica, self._sequencer
        cpu, wall, saved = time.process_time(), time.perf_counter(), replica.history.step
        deadline = time.monotonic() + _PATIENCE_S
        while not (engine.caught_up() and sequencer._done(replica)):
            engine.step(0.0 if isinstance(sequencer.log, MemoryLog) else 0.005)
            if self._every and replica.history.step - saved >= self._every:
                self._factory.save(replica)
                saved = replica.history.step
            check(time.monotonic() < deadline, True, "the engine reaches the end of the log")
        return Took(time.process_time() - cpu, time.perf_counter() - wall)

    def close(self, *, save: bool = True) -> None:
        """Stop the engine, after a checkpoint if it has a directory and `save` is true."""
        if self._checkpoints is not None:
            if save:
                self._factory.save(self._engine.replica)
            self._checkpoints.close(clean=True)
        self._engine.close()


def _until(done: object, what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not done():  # type: ignore[operator]
        check(time.monotonic() < deadline, True, what)
