"""Spark's stream adaptor compared with the plain one, through a real broker: latency by trigger, and a backlog.

Latency: from producing an event to reading its tuples, with about twenty events a second in one stream. Backlog: the
processor time of all processes (JVM, Python workers, this one), with warm workers.
"""

from __future__ import annotations

import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import LeftOutError, Row, check, quantile
from benchmarks.macro.kafka_ingest import NAMES, TRIPLES, _declared, _event
from benchmarks.macro.processes import processor_s
from penstock.errors import StorageError
from penstock.log import END, MemoryLog, Partition, TransientError
from penstock.services.adaptor.adaptor import Adaptor
from penstock.wire import Tuples, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from penstock.log import Log

COMMAND = "python -m benchmarks spark_adaptor"
INTERVAL_S = 0.05
EVENTS = 300
BACKLOG = 100_000
TRIGGERS = ((0, 0), (0, 1_000), (500, 1_000), (2_000, 1_000))
"""(trigger_ms, checkpoint_ms)."""
_SOURCE = Partition(NAMES.events("s0"))
_TUPLES = Partition(NAMES.tuples("s0"))


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield rows for the plain adaptor, for Spark's with each trigger, and for the backlog by both."""
    events = 20 if tiny else EVENTS
    with _machine() as (bootstrap_servers, dictionary, spark):
        for trigger in (None, *(TRIGGERS[:1] if tiny else TRIGGERS)):
            with _adaptor(bootstrap_servers, dictionary, spark, trigger) as log:
                yield from _latency(log, events, trigger)
        for trigger in (None, TRIGGERS[1]):
            yield _backlog(bootstrap_servers, dictionary, spark, trigger, 2_000 if tiny else BACKLOG)


def _title(trigger: tuple[int, int] | None) -> str:
    if trigger is None:
        return "plain adaptor"
    return (
        f"Spark's, trigger {trigger[0]} ms, checkpoint {trigger[1]} ms"
        if trigger[1]
        else (f"Spark's, trigger {trigger[0]} ms, checkpoint with each batch")
    )


@contextmanager
def _machine() -> Iterator[tuple[Callable[[], str], str, SparkSession]]:
    """Yield a function that starts a new broker, a dictionary's address, and a Spark session."""
    try:
        from penstock.broker import Broker  # noqa: PLC0415
        from penstock.replication.cluster_topics import ClusterTopics  # noqa: PLC0415
        from penstock.services.dictionary.dictionary import DictionaryService  # noqa: PLC0415
        from penstock.services.dictionary.flight_server import DictionaryServer  # noqa: PLC0415
        from penstock.spark.session import open_session  # noqa: PLC0415

        spark = open_session("penstock benchmark", "local[2]", "1g", kafka=True)
    except (ImportError, StorageError) as error:
        raise LeftOutError(str(error)) from error
    log, topics = MemoryLog(), ClusterTopics(NAMES)
    log.create(topics.all())
    service = DictionaryService(log, topics)
    server = DictionaryServer("grpc://127.0.0.1:0", lambda: service)
    brokers = []

    def broker() -> str:
        while brokers:
            brokers.pop().stop()
        brokers.append(Broker(Path(tempfile.mkdtemp(dir=folder), "node")).start())
        return brokers[-1].bootstrap_servers

    with tempfile.TemporaryDirectory() as folder:
        try:
            yield broker, f"grpc://127.0.0.1:{server.port}", spark
        finally:
            spark.stop()
            server.shutdown()
            for each in brokers:
                each.stop()


@contextmanager
def _adaptor(
    broker: Callable[[], str], dictionary: str, spark: SparkSession, trigger: tuple[int, int] | None
) -> Iterator[Log]:
    """Run an adaptor on a new broker with one stream, and yield the log."""
    from penstock.log.kafka.kafka_log import KafkaLog  # noqa: PLC0415
    from penstock.spark.stream_adaptor import StreamAdaptor, StreamSettings  # noqa: PLC0415
    from penstock.term_ids.flight_terms import FlightTerms  # noqa: PLC0415

    bootstrap_servers = broker()
    log, stop = KafkaLog(bootstrap_servers), threading.Event()
    _declared(log, 1)

    def work() -> None:
        while not stop.is_set():
            try:
                core.step(0.01 if trigger is None else 0.1)
            except TransientError:
                stop.wait(0.05)
        core.close()

    with tempfile.TemporaryDirectory() as folder:
        core: Adaptor | StreamAdaptor
        if trigger is None:
            core = Adaptor(log, NAMES, FlightTerms([dictionary]), NAMES.adaptor_group)
        else:
            settings = StreamSettings(
                bootstrap_servers,
                (dictionary,),
                folder,
                NAMES.adaptor_group,
                trigger_ms=trigger[0],
                checkpoint_ms=trigger[1],
            )
            core = StreamAdaptor(spark, log, NAMES, settings)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield log
        finally:
            stop.set()
            thread.join()
            log.close()


def _latency(log: Log, events: int, trigger: tuple[int, int] | None) -> Iterator[Row]:
    """Measure latencies, after some events that are not measured."""
    _seen(log, events // 5)
    spent = _seen(log, events)
    for share, name in ((0.5, "p50"), (0.95, "p95")):
        title = f"Event to tuples through Kafka, {_title(trigger)}, {name}"
        yield Row(title, quantile(spent, share) * 1000, "ms", COMMAND, clock="wall")


def _seen(log: Log, events: int) -> list[float]:
    """Return the seconds from producing to reading each event."""
    produced: dict[int, float] = {}
    reader, writer = log.reader({_TUPLES: END}), log.writer()
    first = log.spans([_SOURCE])[_SOURCE].end

    def produce() -> None:
        for i in range(events):
            produced[first + i] = time.perf_counter()
            writer.append([_event("s0", 1_000 + first + i, TRIPLES)])
            time.sleep(INTERVAL_S)

    thread = threading.Thread(target=produce)
    thread.start()
    spent: list[float] = []
    deadline = time.perf_counter() + events * INTERVAL_S + 120
    while len(spent) < events:
        check(time.perf_counter() < deadline, True, "all events come through in time")
        for message in reader.poll(1_000, 0.05):
            record, now = decode(message.value or b""), time.perf_counter()
            assert isinstance(record, Tuples)
            spent += [now - produced[offset] for offset in record.offsets.tolist() if offset in produced]
    thread.join()
    reader.close()
    return spent


def _backlog(
    broker: Callable[[], str], dictionary: str, spark: SparkSession, trigger: tuple[int, int] | None, events: int
) -> Row:
    """Measure tuples a second, by wall time and by processor time."""
    with _adaptor(broker, dictionary, spark, trigger) as log:
        _seen(log, 20)
        reader = log.reader({_TUPLES: END})
        records = [_event("s0", 10_000 + i // 10, TRIPLES) for i in range(events)]
        cpu, began, seen = processor_s(), time.perf_counter(), 0
        log.writer().append(records)
        while seen < events:
            check(time.perf_counter() - began < 300, True, "the backlog is worked off within five minutes")
            found = [decode(m.value or b"") for m in reader.poll(1_000, 0.05)]
            seen += sum(len(r.offsets) for r in found if isinstance(r, Tuples))
        wall_s, cpu_s = time.perf_counter() - began, processor_s() - cpu
        reader.close()
    tuples = events * TRIPLES
    title = f"Backlog of {events} events of {TRIPLES} triples, {_title(trigger)}"
    rates = tuples / wall_s, tuples / cpu_s
    return Row(title, rates[0], "tuples/s", COMMAND, lower_is_better=False, clock="wall", other_clock=rates[1])
