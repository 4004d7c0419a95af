"""A whole cluster of processes with its own broker, for benchmarks: events in real time, results as they come.

This module is no benchmark. An event has `TRIPLES` triples. Its time is the wall clock's, so that results show the
latency: the first event after t moves the watermark past t.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import LeftOutError
from benchmarks.macro.processes import processor_s_of
from penstock.errors import StorageError
from penstock.log import END, Partition, Record
from penstock.log.topics import TopicNames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.cli.cluster.local_cluster import LocalCluster
    from penstock.client import Client
    from penstock.log.kafka import KafkaLog

NAMES = TopicNames("bench")
TRIPLES = 4
STEP_MS = 100
CHUNKS = 10  # how often in each step a producer sends the events that are due
_PATIENCE_S = 120.0
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(slots=True)
class Running:
    """A cluster, its client, a separate connection to its log, and the process of the broker."""

    cluster: LocalCluster
    client: Client
    log: KafkaLog
    broker: int

    def cpu_s(self) -> float:
        """Return the processor time of all services so far, in seconds."""
        return sum(self.cpu_by_service().values())

    def cpu_by_service(self) -> dict[str, float]:
        """Return the processor time of each service so far, in seconds."""
        found: dict[str, float] = {}
        for name, pid in self._pids():
            found[name] = found.get(name, 0.0) + processor_s_of(pid)
        return found

    def memory_mb(self) -> dict[str, float]:
        """Return the resident memory of each service, in MB."""
        found: dict[str, float] = {}
        for name, pid in self._pids():
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            found[name] = found.get(name, 0.0) + pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        return found

    def own_memory_mb(self) -> dict[str, float]:
        """Return the private memory of each service in MB, without regions of others that it maps."""
        found: dict[str, float] = {}
        for name, pid in self._pids():
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            [line] = [line for line in lines if line.startswith("Anonymous:")]
            found[name] = found.get(name, 0.0) + int(line.split()[1]) * 1024 / 1e6
        return found

    def _pids(self) -> list[tuple[str, int]]:
        services = self.cluster.services.items()
        return [(name.rpartition("-")[0], s.process.pid) for name, s in services if s.process is not None]


@contextmanager
def running(**requested: int) -> Iterator[Running]:
    """Start a broker and a cluster, two shards and two buckets. `requested`: instances of services (default 1)."""
    try:
        from penstock.broker import Broker  # noqa: PLC0415 - the cluster extra may be absent
        from penstock.cli.cluster.local_cluster import LocalCluster  # noqa: PLC0415
        from penstock.client import Client  # noqa: PLC0415
        from penstock.log.kafka.kafka_log import KafkaLog  # noqa: PLC0415
    except ImportError as error:
        raise LeftOutError(f"the cluster extra is not installed: {error}") from error
    with tempfile.TemporaryDirectory() as folder:
        try:
            broker = Broker(Path(folder, "broker")).start()
        except StorageError as error:
            raise LeftOutError(str(error)) from error
        log = KafkaLog(broker.bootstrap_servers)
        counts = {"dictionaries": 1, "coordinators": 1, "engines": 1, "stores": 1, "shards": 2, "buckets": 2}
        counts |= requested
        try:
            with (
                LocalCluster(
                    broker.bootstrap_servers, Path(folder, "cluster"), prefix=NAMES.prefix, **counts
                ) as cluster,
                Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=NAMES.prefix) as client,
            ):
                assert broker.pid is not None
                yield Running(cluster, client, log, broker.pid)
        finally:
            log.close()
            broker.stop()


def event(number: int) -> bytes:
    """Return N-Triples of one reading: `TRIPLES` triples of one of a thousand things."""
    thing = f"<http://x/thing/{number % 1000}>"
    values = (f'"{number * TRIPLES + i}"^^<{_INTEGER}>' for i in range(TRIPLES))
    return "".join(f"{thing} <http://x/p{i}> {value} .\n" for i, value in enumerate(values)).encode()


@dataclass(slots=True)
class Paced:
    """Sends events to some streams in real time. `per_step`: events of the first stream in each step; other streams get
    one. `passed`: for each t, when the first stream's watermark passed t.
    """

    log: KafkaLog
    names: list[str]
    per_step: int
    step_ms: int = STEP_MS
    passed: dict[int, float] = field(default_factory=dict)
    sent: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    def play(self, seconds: float) -> None:
        """Produce for `seconds`, or until `stopping`. On a slow machine it may be late, and then sends all due events
        at once.
        """
        writer = self.log.writer()
        step_ms = self.step_ms
        start_ms = (int(time.time() * 1000) // step_ms + 2) * step_ms
        for tick in range(int(seconds * 1000 * CHUNKS / step_ms)):
            if self.stopping.is_set():
                break
            step, chunk = divmod(tick, CHUNKS)
            begin_ms = start_ms + tick * step_ms // CHUNKS
            if (left := begin_ms / 1000 - time.time()) > 0:
                time.sleep(left)
            share = range(self.per_step * chunk // CHUNKS, self.per_step * (chunk + 1) // CHUNKS)
            width = step_ms // CHUNKS
            for i, number in enumerate(share):
                if number == 0:
                    self.passed[start_ms + step * step_ms] = time.perf_counter()
                self._submit(writer, self.names[0], begin_ms + 2 + i * (width - 2) // len(share))
            for name in self.names[1 + chunk :: CHUNKS]:
                self._submit(writer, name, begin_ms + 2)
            writer.flush()
        writer.close()

    def _submit(self, writer: object, name: str, time_ms: int) -> None:
        headers = (("timestamp", b"%d" % time_ms),)
        writer.submit(Record(NAMES.events(name), event(self.sent), headers=headers))  # type: ignore[attr-defined]
        self.sent += 1


class Results:
    """The times when the committed results of one query were read, by instant."""

    def __init__(self, log: KafkaLog, query: str, patience_s: float = _PATIENCE_S) -> None:
        self._patience_s = patience_s
        self.read: dict[int, float] = {}
        self.lines: dict[int, dict[str, object]] = {}
        self._stop = threading.Event()
        topic = NAMES.results
        self._reader = log.reader({Partition(topic, i): END for i in range(log.topics()[topic])})
        self._query = query
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.is_set():
            for message in self._reader.poll(1000, 0.05):
                now, line = time.perf_counter(), json.loads(message.value or b"")
                if line["query"] == self._query:
                    self.read[line["time"]] = now
                    self.lines[line["time"]] = line
        self._reader.close()

    def wait(self, instant: int) -> bool:
        """Wait for the result of an instant. Returns False if the time limit passes first."""
        deadline = time.monotonic() + self._patience_s
        while instant not in self.read and time.monotonic() < deadline:
            time.sleep(0.05)
        return instant in self.read

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join()
