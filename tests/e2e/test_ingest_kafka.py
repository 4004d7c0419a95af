"""Adaptor and dispatcher against a real broker: processes killed, foreign producers, groups that rebalance."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from penstock.broker import Broker
from penstock.core import _native as native
from penstock.ingest.refused_records import DeadLetter, LateEvent
from penstock.log import START, Partition, Record, Topic, TransientError
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from penstock.services.adaptor.adaptor import Adaptor
from penstock.wire import ShardBatch, StreamDeclaration, encode
from support.records import record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.xdist_group("broker")
ROOT = Path(__file__).parents[2]
SHARDS = 2
IRI = "http://x/s"
BOUND_S = 90.0


class LocalTerms:
    """The dictionary service, in this process."""

    def __init__(self) -> None:
        self._dictionary = native.Dictionary()
        self._lock = threading.Lock()

    def encode(self, terms):
        with self._lock:
            return self._dictionary.intern_many(list(terms))


class Cluster:
    """Topics of one test, adaptors as threads of this process, dispatchers as processes."""

    def __init__(self, bootstrap_servers: str, prefix: str, partitions: int = 1, lateness_ms: int = 0) -> None:
        self.bootstrap_servers, self.partitions = bootstrap_servers, partitions
        self.names, self.group = TopicNames(prefix), f"{prefix}-adaptor"
        self.log = KafkaLog(bootstrap_servers)
        sources = [self.names.events("s"), self.names.tuples("s")]
        self.log.create([Topic(name, partitions) for name in sources])
        self.log.create([Topic(self.names.shards, SHARDS), Topic(self.names.late), Topic(self.names.dead_letter)])
        self.log.create([Topic(self.names.control, 1, "compact")])
        declaration = StreamDeclaration(1, IRI, "s", 100, lateness_ms, True, (), 0, 3_600_000, 86_400_000)
        self.writer = self.log.writer()
        self.writer.append([Record(self.names.control, encode(declaration), b"stream:s")])
        self.terms = LocalTerms()
        self.processes: list[subprocess.Popen] = []
        self.threads: list[tuple[threading.Event, threading.Thread]] = []
        self.failures: list[BaseException] = []

    def dispatcher(self, *, heard: bool = False, **settings: str) -> subprocess.Popen:
        return self.service("dispatcher", heard=heard, **settings)

    def service(self, module: str, *, heard: bool = False, **settings: str) -> subprocess.Popen:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "libs"),
            "PENSTOCK_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "PENSTOCK_PREFIX": self.names.prefix,
            "PENSTOCK_SHARDS": str(SHARDS),
            "PENSTOCK_ADAPTOR_GROUP": self.group,
            **settings,
        }
        command = [sys.executable, "-m", f"penstock.services.{module}"]
        # What it says is in the test's report, unless the test reads it: a pipe that nobody reads would fill.
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE if heard else None, text=heard)
        self.processes.append(process)
        return process

    def adaptor(self) -> threading.Event:
        """An adaptor in a thread; setting the event ends it without leaving its group in order."""
        stop = threading.Event()

        def work() -> None:
            adaptor = Adaptor(self.log, self.names, self.terms, self.group)
            while not stop.is_set():
                try:
                    adaptor.step(0.05)
                except TransientError:
                    stop.wait(0.1)
                except BaseException as error:
                    self.failures.append(error)
                    raise
            adaptor.close()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.threads.append((stop, thread))
        return stop

    def produce(self, times: list[int], partition: int = 0) -> None:
        topic = self.names.events("s")
        self.writer.append(
            [
                Record(
                    topic, b'<http://x/%d> <http://x/p> "x" .' % time, None, partition, (("timestamp", b"%d" % time),)
                )
                for time in times
            ]
        )

    def read(self, topic: str, partition: int = 0) -> list:
        reader = self.log.reader({Partition(topic, partition): START})
        found = []
        while True:
            found += [record_of(m) for m in reader.poll(1000, 0.1)]
            if reader.caught_up():
                reader.close()
                return found

    def batches(self) -> dict[int, list[int]]:
        """Times of tuples by batch; checks that each batch is there once, in order, in every shard."""
        found: dict[int, list[int]] = {}
        for shard in range(SHARDS):
            last = None
            for batch in self.read(self.names.shards, shard):
                assert isinstance(batch, ShardBatch)
                assert last is None or batch.first == last + 1, "a batch is lost or doubled"
                last = batch.last
                found.setdefault(batch.last, []).extend(batch.times.tolist())
        return {number: sorted(times) for number, times in found.items() if times}

    def closed(self) -> int:
        """The last batch in every shard."""
        ends = []
        for shard in range(SHARDS):
            batches = self.read(self.names.shards, shard)
            ends.append(batches[-1].last if batches else -1)
        return min(ends)

    def end(self) -> None:
        for stop, thread in self.threads:
            stop.set()
            thread.join(20)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.log.close()
        assert not self.failures


@pytest.fixture
def cluster(broker: Broker, topic_prefix: str) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(**settings) -> Cluster:
        made.append(Cluster(broker.bootstrap_servers, topic_prefix, **settings))
        return made[-1]

    yield make
    for each in made:
        each.end()


def wait(condition: Callable[[], object], what: str, bound_s: float = BOUND_S) -> None:
    deadline = time.monotonic() + bound_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {bound_s} s: {what}"
        time.sleep(0.05)


def expected(times: list[int]) -> tuple[dict[int, list[int]], list[int]]:
    """Batches and late events of one source partition, lateness 0."""
    batches: dict[int, list[int]] = {}
    late, watermark = [], -1
    for time_ms in times:
        if time_ms <= watermark:
            late.append(time_ms)
        else:
            batches.setdefault((time_ms - 1) // 100, []).append(time_ms)
            watermark = max(watermark, time_ms - 1)
    return {number: sorted(held) for number, held in batches.items()}, late


def kill_under_load(cluster: Cluster, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    cluster.adaptor()
    process = cluster.dispatcher()
    times, now = [], 1_000
    for _ in range(kills):
        until = time.monotonic() + rng.uniform(1.5, 4.0)
        while time.monotonic() < until:
            chunk = []
            for _ in range(40):
                now += rng.choice([0, 1, 7, 40])
                chunk.append(now - rng.choice([0, 0, 0, 30]))
            cluster.produce(chunk)
            times += chunk
            time.sleep(0.02)  # some 2,000 events a second
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process = cluster.dispatcher()
    now = (now // 100 + 3) * 100
    cluster.produce([now])
    times.append(now)
    wait(lambda: cluster.closed() >= now // 100 - 2, "the dispatcher closes the last batch", BOUND_S + 30 * kills)
    batches, late = expected(times)
    batches.pop((now - 1) // 100)
    assert cluster.batches() == batches
    found = cluster.read(cluster.names.late)
    assert all(isinstance(each, LateEvent) for each in found)
    assert [each.time_ms for each in found] == late
    assert all(b"<http://x/%d>" % each.time_ms in each.data for each in found)
    process.terminate()
    assert process.wait(30) == 0


def test_a_dispatcher_killed_under_load_loses_and_doubles_nothing(cluster):
    kill_under_load(cluster(), 3, 1)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_dispatcher_killed_twenty_times_loses_and_doubles_nothing(cluster):
    kill_under_load(cluster(), 20, 2)


def kill_each_under_load(cluster: Cluster, rounds: int, seed: int) -> None:
    """Adaptor, dictionary and dispatcher in turn, killed while events come; one event in a hundred is garbage."""
    rng = random.Random(seed)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = {
        "dictionary": {"PENSTOCK_LISTEN": f"127.0.0.1:{port}"},
        "adaptor": {"PENSTOCK_DICTIONARIES": f"grpc://127.0.0.1:{port}"},
        "dispatcher": {},
    }
    running = {name: cluster.service(name, **counts) for name, counts in settings.items()}
    topic = cluster.names.events("s")
    times, garbage, now = [], 0, 1_000
    for turn in range(3 * rounds):
        until = time.monotonic() + rng.uniform(2.0, 5.0)
        while time.monotonic() < until:
            chunk = []
            for _ in range(20):
                now += rng.choice([1, 7, 40])
                chunk.append(now)
            cluster.produce(chunk)
            cluster.writer.append([Record(topic, b"garbage %d" % garbage)])
            times += chunk
            garbage += 1
            time.sleep(0.02)
        name = list(settings)[turn % 3]
        running[name].kill()
        running[name].wait()
        running[name] = cluster.service(name, **settings[name])
    now = (now // 100 + 3) * 100
    cluster.produce([now])
    wait(lambda: cluster.closed() >= now // 100 - 2, "everything has come through", BOUND_S + 60 * rounds)
    assert cluster.batches() == expected(times)[0]
    assert cluster.read(cluster.names.late) == []
    letters = cluster.read(cluster.names.dead_letter)
    assert {letter.data for letter in letters} == {b"garbage %d" % i for i in range(garbage)}


def test_adaptor_dictionary_and_dispatcher_killed_under_load_lose_and_double_nothing(cluster):
    kill_each_under_load(cluster(), 1, 3)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_of_them_killed_twenty_times_loses_and_doubles_nothing(cluster):
    kill_each_under_load(cluster(), 20, 4)


def test_a_second_dispatcher_takes_over_and_the_first_ends(cluster):
    made = cluster()
    made.adaptor()
    first = made.dispatcher(heard=True)
    made.produce([1050, 1150])
    wait(lambda: made.closed() >= 10, "the first closes a batch")
    made.dispatcher()
    times = [1250]

    def progress() -> bool:
        made.produce([times[-1]])
        times.append(times[-1] + 100)
        return first.poll() is not None

    wait(progress, "the first is fenced")
    assert first.returncode == 1
    assert "Fenced" in first.stderr.read()
    wait(lambda: made.closed() >= times[-2] // 100 - 1, "the second goes on")
    assert made.batches() == {k: v for k, v in expected([1050, 1150, *times[:-1]])[0].items() if k <= made.closed()}


def test_kcat_produces_events_and_garbage_is_a_dead_letter(cluster):
    kcat = shutil.which("kcat")
    if kcat is None:
        pytest.skip("kcat is not installed")
    made = cluster()
    made.adaptor()
    made.dispatcher()
    topic = made.names.events("s")

    def produce(data: bytes, *headers: str) -> None:
        options = [part for header in headers for part in ("-H", header)]
        command = [kcat, "-P", "-b", made.bootstrap_servers, "-t", topic, "-p", "0", "-D", "\\0", *options]
        subprocess.run(command, input=data, check=True, timeout=60)

    turtle = b"@prefix x: <http://x/> .\nx:a x:p 1, 2 ; x:q [ x:r 'y' ] ."
    produce(turtle, "content-type=text/turtle", "timestamp=1050")
    produce(
        b'{"@id": "http://x/a", "http://x/p": {"@id": "http://x/b"}}',
        "content-type=application/ld+json",
        "timestamp=1060",
    )
    produce(b"\xff\xfe garbage", "timestamp=1070")
    produce(b"<http://x/a> <http://x/p> <http://x/c> .", "timestamp=1150")
    wait(lambda: made.closed() >= 10, "the batch closes")
    assert made.batches() == {10: [1050] * 4 + [1060]}
    [letter] = made.read(made.names.dead_letter)
    assert isinstance(letter, DeadLetter)
    assert (letter.data, letter.offset, letter.stream) == (b"\xff\xfe garbage", 2, IRI)
    read = [kcat, "-C", "-b", made.bootstrap_servers, "-t", made.names.dead_letter, "-e", "-q", "-f", "%h|%k|%s"]
    headers, key, value = subprocess.run(read, capture_output=True, check=True, timeout=60).stdout.split(b"|")
    assert value == b"\xff\xfe garbage"
    assert key.decode() == f"{topic}/0/2"
    assert {b"timestamp=1070", b"time=1070", b"source=" + key, b"stream=" + IRI.encode()} <= set(headers.split(b","))
    command = [
        kcat,
        "-C",
        "-b",
        made.bootstrap_servers,
        "-t",
        made.names.shards,
        "-e",
        "-q",
        "-f",
        "%p\n",
        "-X",
        "isolation.level=read_committed",
    ]
    seen = subprocess.run(command, capture_output=True, check=True, timeout=60, text=True).stdout.split()
    assert sorted(seen) == ["0", "1"]


def test_adaptors_share_partitions_and_take_over_from_one_another(cluster):
    made = cluster(partitions=3)
    first = made.adaptor()
    made.dispatcher()
    sent: dict[int, list[int]] = {0: [], 1: [], 2: []}
    now = 1000

    def produce_for(seconds: float) -> None:
        nonlocal now
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now += 20
            for partition, held in sent.items():
                made.produce([now + partition], partition)
                held.append(now + partition)

    produce_for(1)
    made.adaptor()
    produce_for(3)
    first.set()
    produce_for(2)
    now += 500
    for partition in sent:
        made.produce([now], partition)
    wait(lambda: made.closed() >= now // 100 - 2, "all partitions have come through")
    last = made.closed()
    every = sorted(t for held in sent.values() for t in held)
    assert sorted(t for held in made.batches().values() for t in held) == [t for t in every if t <= (last + 1) * 100]
    assert made.read(made.names.late) == []


def test_a_broker_that_stops_and_returns_loses_nothing(tmp_path, topic_prefix, broker_jars):
    del broker_jars  # only for its means: this one is killed
    with Broker(tmp_path / "node") as own:
        made = Cluster(own.bootstrap_servers, topic_prefix)
        try:
            made.adaptor()
            process = made.dispatcher()
            made.produce([1050, 1150])
            wait(lambda: made.closed() >= 10, "a batch closes before")
            own.kill()
            time.sleep(1.0)
            own.start()
            made.produce([1250, 1350, 1450])
            wait(lambda: made.closed() >= 13, "batches close after")
            assert made.batches() == {10: [1050], 11: [1150], 12: [1250], 13: [1350]}
            assert process.poll() is None
        finally:
            made.end()


def test_health_reports_an_unavailable_broker(tmp_path, topic_prefix, broker_jars):
    del broker_jars
    own = Broker(tmp_path / "node").start()
    made = Cluster(own.bootstrap_servers, topic_prefix)
    try:
        process = made.dispatcher(heard=True)
        line = ""
        while "http_port" not in line:
            line = process.stderr.readline()
            assert line, "the dispatcher ended"
        port = json.loads(line)["http_port"]

        def status(path: str) -> int:
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20).status
            except urllib.error.HTTPError as error:
                return error.code

        wait(lambda: status("/health/ready") == 200, "ready")
        own.kill()
        wait(lambda: status("/health/ready") == 503, "not ready without a broker")
        assert status("/health/live") == 200
        own.start()
        wait(lambda: status("/health/ready") == 200, "ready again")
        assert "penstock_batches_total" in urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    finally:
        made.end()
        own.stop()


def test_settings_that_are_wrong_end_a_service_with_a_reason():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libs"), "PENSTOCK_SHARDS": "none"}
    environment.pop("PENSTOCK_BOOTSTRAP_SERVERS", None)
    command = [sys.executable, "-m", "penstock.services.dispatcher.service"]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "PENSTOCK_BOOTSTRAP_SERVERS" in done.stderr
    assert "PENSTOCK_SHARDS" in done.stderr
