"""The stream adaptor on Spark. The stream adaptor is one streaming query from the events topics to the tuples topics
(ADR 32).

After each batch, the driver commits the offsets of the batch as the progress of the adaptors' consumer group. A *run*
of the streaming query starts at this progress. A plain adaptor can therefore continue where Spark stopped, and vice
versa. Each run has its own Spark checkpoint. After a failure, Spark can write a batch again. Within a source partition,
records are always in order and without gaps. The dispatcher can therefore drop duplicates (ADR 22).

A run uses one version of the predicate filter (ADR 45). A new version of the filter starts a new run.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.errors import StorageError
from penstock.ingest.declared_streams import DeclaredStreams
from penstock.ingest.predicate_filter import discards, marker, versions
from penstock.log import START, Partition, Record, TransientError
from penstock.log.port import MAX_RECORD_BYTES
from penstock.log.view import records_behind
from penstock.spark.failures import without_frames
from penstock.spark.hadoop import HadoopFiles
from penstock.spark.stream_task import READ, RECORDS_DDL, TaskSettings, adapt
from penstock.wire import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from penstock.log import Log
    from penstock.log.topics import TopicNames
    from penstock.mapping.encodings.registry_access import RegistryAccess
    from penstock.term_ids.peer_certificates import PeerCertificates
    from penstock.wire import StreamDeclaration, StreamPredicates

_NAME = "penstock adaptor"
_RUN = "run-"  # prefix of the name of a run's checkpoint
_FAILURES = 5
"""Maximum number of consecutive failures of the streaming query without a finished batch."""
_EVENTS_PER_PARSE = 10_000
_BYTES_PER_PARSE = 16 << 20
_WRITING = {
    # Never drop a record: from later records of the partition, the dispatcher would conclude that it was processed.
    "delivery.timeout.ms": str((1 << 31) - 1),
    "max.request.size": str(MAX_RECORD_BYTES),
    "buffer.memory": str(2 * MAX_RECORD_BYTES),
}


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Settings of the stream adaptor.

    - `checkpoint`: a folder on any Hadoop file system for the checkpoints of this adaptor's runs.
    - `trigger_ms`: interval between micro-batches in ms. With 0, the next micro-batch starts as soon as there is input.
    - `max_events`: maximum number of events per micro-batch.
    - `kafka`: properties of Kafka's Java clients.
    - `checkpoint_ms`: interval in ms at which offsets are written to the checkpoint. With 0, each micro-batch writes
    its offsets, and waits for the write. With a longer interval, more records are repeated after a crash.
    - `certificates`: the certificates for connections to the dictionaries.
    - `registry`: the access to the schema registry.

    The files in `certificates` and `registry` must exist where Spark's tasks run.
    """

    bootstrap_servers: str
    dictionaries: tuple[str, ...]
    checkpoint: str
    group: str
    trigger_ms: int = 0
    max_events: int = 200_000
    checkpoint_ms: int = 1_000
    give_up_s: float = 300.0
    kafka: Mapping[str, str] = field(default_factory=dict)
    certificates: PeerCertificates | None = None
    registry: RegistryAccess | None = None


class StreamAdaptor:
    """The driver, with counters over all batches.

    - `events`: events that were converted to tuples.
    - `tuples`, `dead`: tuples and dead letters that were written.
    - `discarded`: tuples that the predicate filter has discarded.

    A repeated batch counts again.
    """

    def __init__(self, spark: SparkSession, log: Log, names: TopicNames, settings: StreamSettings) -> None:
        self._spark, self._log, self._names, self._settings = spark, log, names, settings
        self._declared = DeclaredStreams(log, names)
        self._writer = log.transactional(f"{names.prefix}.spark-adaptor")  # fences a replaced driver
        self._query: StreamingQuery | None = None
        self._files = HadoopFiles(spark)
        self._by_topic: Mapping[str, StreamDeclaration] = {}
        self._filters: dict[str, StreamPredicates] = {}
        self._versions: list[int] = []
        self._batch = -1
        self._failures = 0
        self._written: dict[Partition, int] = {}
        self.events = self.tuples = self.dead = self.discarded = 0
        conf = spark.conf
        conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_EVENTS_PER_PARSE))
        conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_BYTES_PER_PARSE))
        self._tidy()

    def step(self, timeout_s: float = 0.0) -> bool:
        """Monitor the Spark streaming query for `timeout_s`. Returns whether the query finished a batch.

        TransientError if the query has failed. The next call then restarts the query. FencedError if another driver has
        started. StorageError if the query has failed repeatedly.
        """
        self._declared.refresh()
        by_topic = self._declared.by_topic()
        filters = dict(self._declared.filters)
        cut = versions(by_topic, filters, sorted(by_topic))
        if (by_topic, cut) != (self._by_topic, self._versions):
            self._stop()
            self._by_topic, self._filters, self._versions = by_topic, filters, cut
        if not by_topic:
            time.sleep(timeout_s)
            return False
        query = self._query = self._query or self._start()
        self._watch(query, timeout_s)
        return self._take_progress(query)

    def lag(self) -> dict[str, int]:
        """Return the number of events of each topic that are not written as tuples yet. Queries the brokers."""
        return records_behind(self._log, dict(self._written))

    # ---- predicate filter
    def _mark(self, sources: list[Partition]) -> None:
        """Write the version of each stream's predicate filter to the tuples partition of each source. The version 0 is
        not written. No streaming query runs at this time, so no record with an older version follows.
        """
        cut = dict(zip(sorted(self._by_topic), self._versions, strict=True))
        records = []
        for source in sources:
            stream, version = self._by_topic[source.topic], cut[source.topic]
            if version:
                value = encode(marker(stream, source.number, version))
                records.append(Record(self._names.tuples(stream.name), value, None, source.number))
        if records:
            self._writer.commit(records)

    def _outdated(self) -> bool:
        """Return whether the run's filter version is outdated. The dispatcher has then perhaps skipped the run's
        records. The offsets of these records must not be committed.
        """
        if not any(discards(stream, self._filters.get(stream.iri)) for stream in self._by_topic.values()):
            return False
        self._declared.catch_up()
        return versions(self._by_topic, self._declared.filters, sorted(self._by_topic)) != self._versions

    # ---- the query
    def _tidy(self) -> None:
        """Remove the checkpoints of finished runs."""
        for folder in self._files.folders(self._settings.checkpoint):
            if folder.startswith(_RUN):
                self._files.delete(f"{self._settings.checkpoint}/{folder}")

    def _start(self) -> StreamingQuery:
        counts = self._log.topics()
        sources = [Partition(topic, n) for topic in sorted(self._by_topic) for n in range(counts.get(topic, 0))]
        self._make_room(counts)
        self._mark(sources)
        self._tidy()
        self._written = self._log.committed(self._settings.group, sources)
        self._batch = -1
        folder = f"{self._settings.checkpoint}/{_RUN}{time.time_ns()}"
        options = {"checkpointLocation": folder, **self._kafka(_WRITING)}
        if self._settings.checkpoint_ms:
            options["asyncProgressTrackingEnabled"] = "true"
            options["asyncProgressTrackingCheckpointIntervalMs"] = str(self._settings.checkpoint_ms)
        columns = ("topic", "partition", "key", "value", "headers")
        records = self._records(sources).observe(_NAME, *self._counts()).select(*columns)
        writer = records.writeStream.format("kafka").queryName(_NAME).options(**options)
        return writer.trigger(processingTime=f"{self._settings.trigger_ms} milliseconds").start()

    def _make_room(self, counts: Mapping[str, int]) -> None:
        """Extend tuples topics to the partition count of their events topics. If an events topic gets more partitions
        later, the run ends.
        """
        for topic, stream in self._by_topic.items():
            tuples = self._names.tuples(stream.name)
            if counts.get(tuples, 0) < counts.get(topic, 0):
                self._log.grow(tuples, counts[topic])

    def _records(self, sources: list[Partition]) -> DataFrame:
        """Return the plan of the streaming query. A task reads and writes whole partitions, which avoids a shuffle and
        preserves the order.
        """
        starting: dict[str, dict[str, int]] = {topic: {} for topic in self._by_topic}
        for source in sources:
            starting[source.topic][str(source.number)] = self._written.get(source, START)
        options = {
            "subscribe": ",".join(sorted(self._by_topic)),
            "startingOffsets": json.dumps(starting),
            "includeHeaders": "true",
            "failOnDataLoss": "false",  # records removed by retention are lost; the plain adaptor continues, too
            "maxOffsetsPerTrigger": str(self._settings.max_events),
            **self._kafka({"isolation.level": "read_committed"}),
        }
        messages = self._spark.readStream.format("kafka").options(**options).load()
        messages = messages.selectExpr(*("unix_millis(timestamp) AS time_ms" if c == "time_ms" else c for c in READ))
        settings = TaskSettings(
            self._names,
            self._settings.dictionaries,
            self._by_topic,
            {source: self._written[source] for source in sources if source in self._written},
            self._settings.give_up_s,
            self._filters,
            self._settings.certificates,
            self._settings.registry,
        )
        tasks = self._spark.sparkContext.defaultParallelism
        return messages.coalesce(tasks).mapInArrow(partial(adapt, settings), RECORDS_DDL)

    def _kafka(self, own: Mapping[str, str]) -> dict[str, str]:
        properties = {**self._settings.kafka, **own, "bootstrap.servers": self._settings.bootstrap_servers}
        return {f"kafka.{name}": value for name, value in properties.items()}

    @staticmethod
    def _counts() -> list[Any]:
        from pyspark.sql import functions  # noqa: PLC0415 - an extra

        return [functions.sum(name).alias(name) for name in ("events", "tuples", "dead", "discarded")]

    def _watch(self, query: StreamingQuery, timeout_s: float) -> None:
        from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - an extra

        try:
            ended = query.awaitTermination(timeout_s) if timeout_s > 0 else not query.isActive
        except StreamingQueryException as exception:
            self._query = None
            self._failures += 1
            reason = f"Spark's query failed: {without_frames(str(exception))}"
            if self._failures >= _FAILURES:
                raise StorageError(f"{reason} ({self._failures} times without a finished batch)") from exception
            raise TransientError(reason) from exception
        if ended:
            self._query = None

    def _stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._take_progress(self._query)
            self._query = None

    # ---- progress
    def _take_progress(self, query: StreamingQuery) -> bool:
        """Process the batches that have finished since the last call. Adds the numbers of events and tuples of these
        batches to the counters, and commits the offsets of the batches. Returns whether there were such batches. All
        records of these batches are in the log.
        """
        fresh = [p for p in query.recentProgress if p["batchId"] > self._batch and p["sources"]]
        for progress in fresh:
            made = progress["observedMetrics"].get(_NAME)
            if made is not None:
                self.events += made["events"] or 0
                self.tuples += made["tuples"] or 0
                self.dead += made["dead"] or 0
                self.discarded += made["discarded"] or 0
        if fresh:
            self._batch, self._failures = fresh[-1]["batchId"], 0
            self._tell(offsets_of(fresh[-1]["sources"][0]["endOffset"]))
        return bool(fresh)

    def _tell(self, offsets: Mapping[Partition, int]) -> None:
        """Commit offsets as the group's progress, except for partitions where a plain adaptor has committed greater
        offsets.
        """
        moved = {name: at for name, at in offsets.items() if at > self._written.get(name, -1)}
        if moved and not self._outdated():
            self._writer.commit([], moved, self._settings.group)
            self._written |= moved

    def close(self) -> None:
        """Stop the streaming query. The session stays open."""
        self._stop()
        self._writer.close()
        self._declared.close()


def offsets_of(text: str) -> dict[Partition, int]:
    """Parse offsets in Spark's JSON. The form is topic → partition → next offset."""
    found = json.loads(text)
    return {Partition(topic, int(n)): at for topic, own in found.items() for n, at in own.items()}
