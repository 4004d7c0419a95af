"""Every door of a cluster and of `penstock serve` takes hostile input while good events go on being answered, once each.

PENSTOCK_POISON_SECONDS (600) says for how long, PENSTOCK_POISON_SEED makes the same inputs again. Of each door the last
inputs are printed when the test fails, as (door, number): `Inputs.rng(door, number)` makes them.
"""

from __future__ import annotations

import http.client
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pyarrow.flight as flight
import pytest
from tests.support.cluster_load import Load, small
from tests.support.poison import Inputs

from penstock.client import Client
from penstock.log import Record, TransientError
from penstock.log.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.cli.up import LocalCluster

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("broker")]
SECONDS = float(os.environ.get("PENSTOCK_POISON_SECONDS", "600"))
SEED = int(os.environ.get("PENSTOCK_POISON_SEED", str(random.SystemRandom().randrange(1 << 32))))
MEMORY_LIMIT = 8 * (64 << 20)  # what events and requests on their way may take beside twice the idle memory
LARGE = max(4, int(SECONDS / 10))
STARTS = 3
SETTINGS = {"timing": "all", "idle_timeout_ms": 3_600_000}
POISON = "http://p/s"
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW")
ROUTES = ("/", "/sparql", "/streams", "/streams/{}", "/streams/{}/events", "/streams/{}/advance", "/streams/{}/late", "/dead-letters",
    "/queries", "/queries/{}", "/queries/{}/results", "/results", "/update", "/data", "/explain", "/stats", "/metrics", "/health/live",
    "/health/ready", "/engines", "/loads", "/%00", "/../x")  # fmt: skip
PARAMETERS = (
    "timestamp",
    "graph",
    "base",
    "query",
    "wait",
    "topic",
    "after",
    "timeout_s",
    "memory_mb",
    "default-graph-uri",
)
TYPES = ("application/json", "application/x-ndjson", "application/sparql-query", "application/x-www-form-urlencoded", "text/turtle",
    "application/ld+json", "application/rdf+xml", "x/y", "")  # fmt: skip


@dataclass
class Siege:
    """Threads that attack doors until the end; what they sent last, and what went wrong in them."""

    inputs: Inputs
    end: float
    last: dict[str, deque[tuple[int, int]]] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def attack(self, door: str, blow: Callable[[random.Random], int]) -> None:
        thread = threading.Thread(target=self._run, args=(door, blow), name=door, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _run(self, door: str, blow: Callable[[random.Random], int]) -> None:
        seen = self.last.setdefault(door, deque(maxlen=5))
        number = 0
        while time.monotonic() < self.end:
            number += 1
            try:
                seen.append((number, blow(self.inputs.rng(door, number))))
            except Exception as error:  # noqa: BLE001 - a fault of this test, not of the cluster
                self.errors.append(f"{door} {number}: {error!r}")
                return
            self.sent[door] += 1
            time.sleep(0.02)  # the machine is shared: pressure comes from the content


def produce(load: Load, topic: str, blow: Callable[[random.Random], Record]) -> Callable[[random.Random], int]:
    del topic
    writer = load.log.writer()

    def send(rng: random.Random) -> int:
        record = blow(rng)
        with suppress(LogError, TransientError, ValueError):  # records that a client refuses
            writer.append([record])
        return len(record.value or b"")

    return send


def to_events(load: Load, inputs: Inputs, stream: str) -> Callable[[random.Random], Record]:
    """Garbage for a stream. That of the good stream is never ahead of it, and about other predicates."""

    def blow(rng: random.Random) -> Record:
        kind, data = inputs.rdf(rng)
        latest = load.now if stream == "s" else 1 << 41
        absurd = [b"", b"-1", b"1e9", b"9" * 400, b"\xff", str(1 << 59).encode()]
        stamp = rng.choice(absurd) if rng.random() < 0.2 else str(rng.randrange(latest)).encode()
        headers = [("content-type", kind.encode() if rng.random() < 0.9 else rng.randbytes(20)), ("timestamp", stamp)]
        if stream != "s" and rng.random() < 0.05:
            headers, data = [("heartbeat", stamp)], rng.choice([b"", data])
        return Record(load.names.events(stream), data, rng.choice([None, b"k"]), 0, tuple(headers))

    return blow


def to_requests(load: Load, inputs: Inputs, topic: str) -> Callable[[random.Random], Record]:
    """Requests by topic. The broker itself refuses records without a key: the topics are compacted."""

    def blow(rng: random.Random) -> Record:
        body = inputs.json(rng) if topic == load.names.streams else inputs.query(rng)
        key = rng.choice([b"", b"\xff\x00", f"poison-{rng.randrange(10)}".encode()])
        value = None if rng.random() < 0.2 else body
        headers = ((rng.choice(["base", "topic", "x"]), rng.choice([b"http://p/", b"__consumer_offsets", b"\xff"])),)
        return Record(topic, value, key, 0, headers if rng.random() < 0.3 else ())

    return blow


def over_http(inputs: Inputs, url: str) -> Callable[[random.Random], int]:
    """Any method, route, parameters and body; of queries and streams only poisoned names."""
    place = urlsplit(url)
    assert place.hostname is not None

    def blow(rng: random.Random) -> int:
        method, name = rng.choice(METHODS), f"poison-{rng.randrange(5)}"
        iri = rng.choice([name, quote(POISON, safe=""), quote(f"http://p/{name}", safe="")])
        path = rng.choice(ROUTES).format(iri)
        if rng.random() < 0.5:
            value = rng.choice([str(rng.randrange(1 << 41)), "-1", "x", "9" * 30, quote(inputs.query(rng)[:2000])])
            path += f"?{rng.choice(PARAMETERS)}={value}"
        body = b"" if rng.random() < 0.1 else inputs.any(rng)
        headers = {
            "content-type": rng.choice(TYPES),
            "accept": rng.choice(["*/*", "text/csv", "x", "application/json"]),
        }
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=5)
        with suppress(OSError, http.client.HTTPException):  # server-sent events have no end
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read(1 << 16)
        connection.close()
        return len(body)

    return blow


def over_flight(inputs: Inputs, port: int) -> Callable[[random.Random], int]:
    def blow(rng: random.Random) -> int:
        body = inputs.any(rng)
        try:
            with flight.connect(f"grpc://127.0.0.1:{port}") as client:
                options = flight.FlightCallOptions(timeout=5)
                kind = rng.randrange(4)
                if kind == 0:
                    list(client.do_action(flight.Action(rng.choice(["encode", "decode", "x"]), body), options))
                elif kind == 1:
                    client.do_get(flight.Ticket(body), options).read_all()
                elif kind == 2:
                    client.get_flight_info(flight.FlightDescriptor.for_command(body), options)
                else:
                    list(client.list_flights(body, options))
        except (flight.FlightError, OSError, ValueError, KeyError, NotImplementedError):
            pass
        except Exception as error:
            if "arrow" not in type(error).__module__.lower():
                raise
        return len(body)

    return blow


def over_tcp(inputs: Inputs, ports: Callable[[], list[int]]) -> Callable[[random.Random], int]:
    """Garbage on any port; connections that say little and stay."""
    held: deque[socket.socket] = deque()

    def blow(rng: random.Random) -> int:
        found = ports()
        body = rng.choice(
            [
                inputs.any(rng),
                rng.randbytes(64),
                b"\xff" * 16,
                b"\x16\x03\x01\x02\x00",
                b"GET / HTTP/1.1\r\nhost: x\r\n",
            ]
        )
        body = body[: 1 << 20]
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", rng.choice(found)), timeout=2)
            connection.sendall(body[: 1 if rng.random() < 0.2 else None])
            held.append(connection)  # slow writers
        if len(held) > 20:
            held.popleft().close()
        return len(body)

    return blow


# ---- what is watched
def listening(pids: list[int]) -> list[int]:
    """Ports that processes listen on."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.update(re.findall(r"socket:\[(\d+)\]", str(entry.readlink())))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(each[1].partition(":")[2], 16) for each in lines if each[3] == "0A" and each[9] in inodes]


def tree(pid: int) -> list[int]:
    """A process and its children."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(each for child in children for each in tree(int(child)))]
    return []


def memory(pid: int) -> int:
    """Anonymous memory of a process and its children, bytes."""
    found = 0
    for each in tree(pid):
        with suppress(OSError):
            text = Path(f"/proc/{each}/status").read_text()
            found += sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("RssAnon:"))
    return found


class Served:
    """A `penstock serve` with a stream whose events are good, and their answers."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "penstock", "serve", "--data-dir", str(folder), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1].rstrip("/")
        self.now = 0
        self.ask("PUT", "/streams/good", b'{"timing": "all", "batch_ms": 1000, "idle_timeout_ms": 3600000}')
        text = "SELECT (COUNT(*) AS ?n) FROM STREAM <good:s> [RANGE 1s STEP 1s] WHERE { ?s <good:p> ?o }"
        self.ask(
            "PUT",
            f"/streams/{quote('good:s', safe='')}",
            b'{"timing": "all", "batch_ms": 1000, "idle_timeout_ms": 3600000}',
        )
        assert self.ask("PUT", "/queries/good", text.encode())[0] < 300

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=120)
        connection.request(method, path, body)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def push(self) -> None:
        self.now += 1000
        path = f"/streams/{quote('good:s', safe='')}"
        status, text = self.ask("POST", f"{path}/events?timestamp={self.now}", b"<good:a> <good:p> <good:b> .")
        assert status < 300, text
        status, text = self.ask("POST", f"{path}/advance?timestamp={self.now}")
        assert status < 300, text

    def answered(self) -> bool:
        """Whether every instant of the last 50 is there once, with one row."""
        place = urlsplit(self.url)
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=5) as connection:
            connection.sendall(
                f"GET /queries/good/results?after={self.now - 50_000} HTTP/1.1\r\nhost: 127.0.0.1:{place.port}\r\n\r\n".encode()
            )
            found, deadline = b"", time.monotonic() + 30
            while f"id: {self.now}\n".encode() not in found.replace(b"\r", b"") and time.monotonic() < deadline:
                with suppress(TimeoutError):
                    found += connection.recv(1 << 16)
        times = [int(each) for each in re.findall(rb"id: (\d+)", found)]
        return times == list(range(max(1000, self.now - 49_000), self.now + 1, 1000))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(120)


class Watch:
    """Memory of each process: idle, and at most; restarts."""

    def __init__(self, cluster: LocalCluster, served: Served) -> None:
        self._cluster, self._served = cluster, served
        self.idle = self._now()
        self.peak = dict(self.idle)

    def pids(self) -> dict[str, int]:
        found = {name: s.process.pid for name, s in self._cluster.services.items() if s.process is not None}
        return found | {"serve": self._served.process.pid}

    def _now(self) -> dict[str, int]:
        return {name: memory(pid) for name, pid in self.pids().items()}

    def look(self) -> None:
        for name, size in self._now().items():
            self.peak[name] = max(size, self.peak.get(name, 0))
        self._cluster.watch()

    def beyond(self) -> dict[str, str]:
        """What has grown too much, or ends again and again."""
        grown = {
            name: f"{self.peak[name] >> 20} MiB, idle {idle >> 20}"
            for name, idle in self.idle.items()
            if self.peak[name] > 2 * idle + MEMORY_LIMIT
        }
        ended = {n: f"{s.starts} starts" for n, s in self._cluster.services.items() if s.starts > STARTS}
        if self._served.process.poll() is not None:
            ended["serve"] = f"exit code {self._served.process.returncode}"
        return grown | ended


def siege(load: Load, cluster: LocalCluster, served: Served, watch: Watch) -> Siege:
    inputs = Inputs(SEED, LARGE)
    made = Siege(inputs, time.monotonic() + SECONDS)
    for stream in ("s", "p"):
        made.attack(f"events.{stream}", produce(load, stream, to_events(load, inputs, stream)))
    for topic in (load.names.streams, load.names.queries):
        made.attack(topic.rpartition(".")[2], produce(load, topic, to_requests(load, inputs, topic)))
    for name, url in (("coordinator", cluster.url), ("engine", cluster.sparql_url), ("serve", served.url)):
        made.attack(f"http {name}", over_http(inputs, url.split(",")[0]))
    port = int(cluster.services["dictionary-0"].settings["PENSTOCK_LISTEN"].rpartition(":")[2])
    made.attack("flight", over_flight(inputs, port))
    made.attack("tcp", over_tcp(inputs, lambda: listening(list(watch.pids().values()))))
    return made


def said(made: Siege, watch: Watch) -> Iterator[str]:
    yield f"PENSTOCK_POISON_SEED={SEED} PENSTOCK_POISON_SECONDS={SECONDS:g}"
    yield f"sent {dict(made.sent)}"
    yield f"last (number, bytes) by door: { {door: list(each) for door, each in made.last.items()} }"
    yield "MiB idle, peak: " + ", ".join(f"{n} {i >> 20}, {watch.peak[n] >> 20}" for n, i in watch.idle.items())
    yield f"starts { {n: s.starts for n, s in watch._cluster.services.items()} }"


@pytest.mark.timeout(SECONDS + 1_200)
def test_poison_at_every_door_leaves_good_events_answered(broker, topic_prefix, tmp_path) -> Any:
    load = Load(broker.bootstrap_servers, topic_prefix, settings=SETTINGS)
    with ExitStack() as stack:
        cluster = stack.enter_context(small(broker.bootstrap_servers, topic_prefix, tmp_path / "c", stores=1))
        cluster.supervisor.report = print
        client = stack.enter_context(Client(broker.bootstrap_servers, prefix=topic_prefix, url=cluster.url))
        load.prepare(client)
        client.declare_stream(POISON, "p", timing="all")
        served = Served(tmp_path / "serve")
        stack.callback(served.close)
        load.push(20, 2.0)
        watch = Watch(cluster, served)
        made = siege(load, cluster, served, watch)
        try:
            while time.monotonic() < made.end and not made.errors and not watch.beyond():
                load.push(5, 1.0)
                served.push()
                watch.look()
            made.end = 0.0
            for thread in made.threads:
                thread.join(60)
            assert made.errors == []
            assert watch.beyond() == {}
            assert served.answered()
            load.check(cluster)
            assert served.ask("GET", "/health/live")[0] == 200
            watch.look()
            assert watch.beyond() == {}
        finally:
            print("\n".join(said(made, watch)))
