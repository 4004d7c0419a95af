"""The cost of ingest: processor time of adaptor and dispatcher over the log in memory; latency through a real broker.

In memory: events of one stream pass the adaptor, then the dispatcher; then a dispatcher with many streams closes a
batch of each in every tick. Through a broker: adaptor and dispatcher are two threads of one process; the figure is the
time from producing the event that moves the watermark past a batch to the batch's committed record. The output is
counted.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import LeftOutError, Row, check, quantile
from penstock.core import _native as native
from penstock.errors import StorageError
from penstock.log import END, START, MemoryLog, Partition, Record, Topic, TransientError
from penstock.log.clock import SystemClock
from penstock.log.topics import TopicNames
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.wire import ShardBatch, StreamDeclaration, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.harness import Finding
    from penstock.core._native import Ids, TermTuple
    from penstock.log import Log

COMMAND = "python -m benchmarks kafka_ingest"
NAMES = TopicNames("bench")
SHARDS = 4
TRIPLES = 4
EVENTS = 40_000
STREAMS = (1, 100, 1_000)
CLOSINGS = 300


class _Terms:
    """The dictionary service, in this process."""

    def __init__(self) -> None:
        self._dictionary = native.Dictionary()

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        return self._dictionary.intern_many(list(terms))


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for the log in memory, then for a broker."""
    yield from _throughput(2_000 if tiny else EVENTS)
    for streams in (1, 10) if tiny else STREAMS:
        yield _tick(streams, 3 if tiny else 30)
    yield from _latency(5 if tiny else CLOSINGS)


def _declared(log: Log, streams: int) -> list[StreamDeclaration]:
    declarations = [
        StreamDeclaration(i + 1, f"http://x/{i}", f"s{i}", 100, 0, True, (), 0, 3_600_000, 86_400_000)
        for i in range(streams)
    ]
    log.create([Topic(NAMES.shards, SHARDS), Topic(NAMES.control, 1, "compact")])
    log.create([Topic(NAMES.late), Topic(NAMES.dead_letter)])
    log.create([Topic(name(d.name)) for d in declarations for name in (NAMES.events, NAMES.tuples)])
    log.writer().append([Record(NAMES.control, encode(d), d.iri.encode()) for d in declarations])
    return declarations


def _event(name: str, time_ms: int, triples: int) -> Record:
    lines = (f'<http://x/s{time_ms % 997}> <http://x/p{i}> "{time_ms % 89}.{i}" .' for i in range(triples))
    return Record(NAMES.events(name), "\n".join(lines).encode(), None, 0, (("timestamp", b"%d" % time_ms),))


def _cpu_us(work: Callable[[], object]) -> float:
    began = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - began) / 1000


def _throughput(events: int) -> Iterator[Row]:
    log = MemoryLog()
    _declared(log, 1)
    log.writer().append([_event("s0", 1_000 + i // 10, TRIPLES) for i in range(events)])
    adaptor = Adaptor(log, NAMES, _Terms(), NAMES.adaptor_group)
    dispatcher = Dispatcher(log, NAMES, SHARDS, SystemClock(), NAMES.adaptor_group)
    adapting = _cpu_us(lambda: _until_idle(adaptor))
    dispatching = _cpu_us(lambda: _until_idle(dispatcher))
    stream = dispatcher.streams["http://x/0"]
    written = sum(len(batch.times) for shard in range(SHARDS) for batch in _batches(log, shard))
    check(written + stream.open.tuples, events * TRIPLES, "tuples in closed and open batches")
    for name, spent in (("adaptor", adapting), ("dispatcher", dispatching)):
        yield Row(f"Ingest: {name}, one event of {TRIPLES} triples", spent / events, "µs", COMMAND, clock="cpu")


def _until_idle(core: Adaptor | Dispatcher) -> None:
    while core.step():
        pass


def _batches(log: Log, shard: int) -> list[ShardBatch]:
    reader = log.reader({Partition(NAMES.shards, shard): START})
    records = [decode(m.value or b"") for m in reader.poll(10_000_000)]
    return [record for record in records if isinstance(record, ShardBatch)]


def _tick(streams: int, ticks: int) -> Row:
    """Measure a tick, in which each stream gets one event, which closes the batch before."""
    log = MemoryLog()
    declarations = _declared(log, streams)
    adaptor = Adaptor(log, NAMES, _Terms(), NAMES.adaptor_group)
    dispatcher = Dispatcher(log, NAMES, SHARDS, SystemClock(), NAMES.adaptor_group)
    spent = []
    for tick in range(ticks):
        log.writer().append([_event(d.name, 1_001 + 100 * tick, 1) for d in declarations])
        _until_idle(adaptor)
        spent.append(_cpu_us(lambda: _until_idle(dispatcher)))
    check(all(s.closed == 8 + ticks for s in dispatcher.streams.values()), True, "every stream has closed its batches")
    name = f"Ingest: dispatcher, a tick that closes a batch of each of {streams} streams, {SHARDS} shards, a stream"
    return Row(name, statistics.median(spent[1:]) / streams, "µs", COMMAND, clock="cpu")


def _latency(closings: int) -> Iterator[Row]:
    try:
        from penstock.broker import Broker  # noqa: PLC0415
        from penstock.log.kafka.kafka_log import KafkaLog  # noqa: PLC0415
    except ImportError as error:
        raise LeftOutError(f"the cluster extra is not installed: {error}") from error
    with tempfile.TemporaryDirectory() as directory:
        try:
            broker = Broker(Path(directory, "broker")).start()
        except StorageError as error:
            raise LeftOutError(str(error)) from error
        log = KafkaLog(broker.bootstrap_servers)
        try:
            spent = _closings(log, closings)
        finally:
            log.close()
            broker.stop()
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        title = f"Ingest: event that closes a batch to its committed record, through Kafka, {name}"
        yield Row(title, quantile(spent, share) * 1000, "ms", COMMAND, clock="wall")


def _closings(log: Log, closings: int) -> list[float]:
    """Return the seconds from producing each event to reading the committed batch that it closes."""
    _declared(log, 1)
    stop = threading.Event()
    writer = log.writer()

    def work(core: Adaptor | Dispatcher) -> None:
        while not stop.is_set():
            try:
                core.step(0.01)
            except TransientError:
                stop.wait(0.05)
        core.close()

    cores = (
        Adaptor(log, NAMES, _Terms(), NAMES.adaptor_group),
        Dispatcher(log, NAMES, SHARDS, SystemClock(), NAMES.adaptor_group),
    )
    threads = [threading.Thread(target=work, args=(core,)) for core in cores]
    for thread in threads:
        thread.start()
    reader = log.reader({Partition(NAMES.shards, 0): END})
    spent = []
    try:
        for i in range(closings + 10):
            began = time.perf_counter()
            writer.append([_event("s0", 1_001 + 100 * i, TRIPLES)])
            while not reader.poll(100, 1.0):
                check(time.perf_counter() - began < 60, True, "a batch closes within a minute")
            spent.append(time.perf_counter() - began)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return spent[10:]
