"""The parts of one query engine, with only the shards topic: no coordinator, no dispatcher, no placement."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.limits import Limits
from penstock.engine.oneshot.texts import Texts
from penstock.log import START, MemoryLog, Partition, Record
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.quarantine import InternalRecords
from penstock.replication.cluster_topics import ClusterTopics
from penstock.replication.progress_log import ProgressWriter
from penstock.services.query_engine.buckets import Bucket, BucketSet
from penstock.services.query_engine.catch_up import CatchUp
from penstock.services.query_engine.enrolment import Enrolment
from penstock.services.query_engine.measures.commit_metrics import CommitMetrics
from penstock.services.query_engine.measures.load_meter import LoadMeter
from penstock.services.query_engine.replica_checkpoint import ReplicaFactory
from penstock.services.query_engine.result_collector import ResultCollector
from penstock.services.query_engine.result_sinks import ResultSinks
from penstock.services.query_engine.retained_state import RetainedState
from penstock.services.query_engine.step_applier import StepApplier
from penstock.wire import QueryRegistration, QueryStop, ShardBatch, StreamDeclaration, encode
from support.split import Service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.replication.replica import EngineReplica

IRI = "http://x/s"
BATCH_MS = 100
TEXT = f"REGISTER QUERY q AS SELECT ?o FROM STREAM <{IRI}> [RANGE 200ms STEP 100ms] WHERE {{ ?s <http://x/p> ?o }}"


class EngineParts:
    """A query engine over one partition of the log, with one bucket. `declare`, `register`, `stop` and `batch` write
    the log.
    """

    def __init__(self) -> None:
        self.clock = VirtualClock(1_000)
        self.log = MemoryLog(self.clock)
        self.topics = topics = ClusterTopics(TopicNames(), shards=1, buckets=1)
        self.log.create(topics.all())
        self.service = Service()
        self.metrics = CommitMetrics(self.clock)
        self.progressed = self.commits = self.numbered = 0
        self.sinks = ResultSinks(self.log, topics, self.clock)
        self.collector = ResultCollector(self.sinks, LoadMeter(self.clock), self._progress)
        rng = random.Random(0)
        terms: Any = self.service
        factory = ReplicaFactory(None, terms, 1, Limits(), self.clock.now_ms, rng)
        self.replica: EngineReplica = factory.make(self.collector)[0]
        self.retained = RetainedState(self.log, topics, self.replica)
        placement: Any = SimpleNamespace(lost=lambda *_: None)
        self.buckets = BucketSet(1, self.replica.runtime, placement, self.retained)
        self.catch_up = CatchUp(self.replica.runtime, self.clock)
        self.enrolment = Enrolment(
            topics.names,
            self.replica,
            Texts(Limits()),
            self.buckets,
            self.collector,
            self.catch_up,
            self.metrics,
        )
        self.near_end: list[bool] = []
        readiness: Any = SimpleNamespace(look=lambda _, *, busy: self.near_end.append(busy))
        commits: Any = SimpleNamespace(commit_or_wait=self._commit)
        self.steps = StepApplier(
            self.log.reader({Partition(topics.names.shards): START}),
            InternalRecords(self.log, topics.names),
            self.replica,
            self.buckets,
            self.enrolment,
            self.collector,
            self.catch_up,
            commits,
            self.retained,
            readiness,
            self.metrics,
        )
        self._writer = self.log.writer()

    def _progress(self) -> None:
        self.progressed += 1

    def _commit(self) -> None:
        self.commits += 1

    # ---- the bucket
    def open(self, *, enrolled: bool = True) -> Bucket:
        """Open the bucket, as if no engine had owned it before."""
        progress = ProgressWriter(self.topics.progress, 0, {})
        bucket = Bucket(0, self.log.transactional("bucket.0"), progress, None, self.buckets.next_incarnation())
        bucket.enrolled = enrolled
        self.buckets.by_number[0] = bucket
        return bucket

    # ---- the log
    def write(self, record: Any) -> None:
        self._writer.append([Record(self.topics.names.shards, encode(record), b"", 0)])

    def _number(self) -> int:
        self.numbered += 1
        return self.numbered

    def declare(self, retention_ms: int = 0, **more: Any) -> None:
        self.write(StreamDeclaration(self._number(), IRI, "s", BATCH_MS, 0, True, (), retention_ms, 0, 60_000, **more))

    def register(self, name: str, text: str = TEXT, max_catch_up: int = 1_000_000, **more: Any) -> int:
        number = self._number()
        streams, steps = (IRI,), (BATCH_MS,)
        record = QueryRegistration(number, name, text, number, streams, steps=steps, max_catch_up=max_catch_up, **more)
        self.write(record)
        return number

    def stop(self, name: str) -> None:
        self.write(QueryStop(self._number(), name))

    def batch(self, first: int, last: int | None = None, objects: Sequence[str] = ()) -> None:
        """Write a run of closed batches (`first` to `last`), whose tuples are all in the first batch."""
        intern = self.service.terms.intern
        count = len(objects)
        ids = np.array([intern(1, f"http://x/{text}", "", "") for text in objects], np.uint64)
        same = np.full(count, intern(1, "http://x/a", "", ""), np.uint64)
        predicates = np.full(count, intern(1, "http://x/p", "", ""), np.uint64)
        times = np.full(count, first * BATCH_MS + 1, np.int64)
        positions = np.arange(count, dtype=np.uint32)
        until = first if last is None else last
        self.write(ShardBatch(IRI, first, until, positions, times, same, predicates, ids, declared=1))

    def apply(self) -> bool:
        """Apply what is in the log."""
        return self.steps.read(0.0, lambda: False)


def times_of(records: Sequence[Record]) -> list[str]:
    """Return the keys (query@time) of result records."""
    return [record.key.decode() for record in records if record.key is not None and b"@" in record.key]
