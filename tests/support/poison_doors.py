"""Doors of a cluster and of `penstock serve`, and the inputs for each, which `Inputs` makes one by one."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from penstock.log import Record, TransientError
from penstock.log.errors import LogError
from penstock.term_ids.term_tables import IDS, MAX_TERMS, TERMS, terms_table

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from tests.support.cluster_load import Load
    from tests.support.poison import Inputs

    Blow = Callable[[random.Random], int]

POISON = "http://p/s"
"""The stream that gets any garbage."""
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW")
ROUTES = ("/", "/sparql", "/streams", "/streams/{}", "/streams/{}/events", "/streams/{}/advance", "/streams/{}/late", "/dead-letters",
    "/queries", "/queries/{}", "/queries/{}/results", "/results", "/update", "/data", "/rdf-graphs", "/rdf-graphs/{}", "/explain", "/stats", "/metrics", "/health/live",
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
    """Threads that attack doors until the end. Keeps their latest inputs and their errors."""

    inputs: Inputs
    end: float
    last: dict[str, deque[tuple[int, int]]] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def attack(self, door: str, blow: Blow) -> None:
        thread = threading.Thread(target=self._run, args=(door, blow), name=door, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _run(self, door: str, blow: Blow) -> None:
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
            time.sleep(0.02)  # the machine is shared: the content is to do harm, not the number of inputs


def produce(load: Load, blow: Callable[[random.Random], Record]) -> Blow:
    writer = load.log.writer()

    def send(rng: random.Random) -> int:
        record = blow(rng)
        with suppress(LogError, TransientError, ValueError):  # the client refuses some records
            writer.append([record])
        return len(record.value or b"")

    return send


def to_events(load: Load, inputs: Inputs, stream: str) -> Callable[[random.Random], Record]:
    """Return a source of garbage events for a stream. Garbage in stream `s` is never ahead of it, and has other
    predicates.
    """

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
    """Return a source of requests for a topic. (The topics are compacted, so the broker refuses records without a key.)"""

    def blow(rng: random.Random) -> Record:
        body = inputs.json(rng) if topic == load.names.streams else inputs.query(rng)
        key = rng.choice([b"", b"\xff\x00", f"poison-{rng.randrange(10)}".encode()])
        value = None if rng.random() < 0.2 else body
        headers = ((rng.choice(["base", "topic", "x"]), rng.choice([b"http://p/", b"__consumer_offsets", b"\xff"])),)
        return Record(topic, value, key, 0, headers if rng.random() < 0.3 else ())

    return blow


def over_http(inputs: Inputs, url: Callable[[], str]) -> Blow:
    """Send HTTP requests with any method, route, parameters and body. The names of queries and streams are always
    poisoned.
    """

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
        if rng.random() < 0.05:
            headers["x-long"] = "y" * inputs.size(rng)
        place = urlsplit(url())
        assert place.hostname is not None
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=5)
        with suppress(OSError, http.client.HTTPException):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read1(1 << 16)  # answers of live results have no end
        connection.close()
        return len(body)

    return blow


# ---- Flight
def _batches(inputs: Inputs, rng: random.Random) -> tuple[pa.Schema, Iterable[pa.RecordBatch], int]:
    """Return what may be a request to a dictionary, and its approximate number of bytes."""
    kind = rng.randrange(8)
    size = inputs.size(rng) if rng.random() < 0.2 else rng.randrange(2_000)
    if kind == 0:  # terms, some of them wrong
        terms = [(rng.randrange(6), inputs.any(rng)[:size].decode("utf-8", "replace"), "urn:p:t", "") for _ in range(9)]
        return TERMS, terms_table(terms).to_batches(), 9 * size
    if kind == 1:  # one long term, beyond the limit
        return TERMS, terms_table([(3, "\x01" * (size + (8 << 20)), "urn:p:t", "")]).to_batches(), size + (8 << 20)
    if kind == 2:  # ids that name nothing
        ids = np.frombuffer(rng.randbytes(8 * (size // 8)), np.uint64)
        return IDS, pa.table([pa.array(ids)], schema=IDS).to_batches(), size
    if kind == 3:  # too many rows
        rows = pa.table([pa.array(np.zeros(MAX_TERMS // 2, np.uint64))], schema=IDS).to_batches()
        return IDS, rows * rng.randrange(1, 9), 8 * MAX_TERMS
    if kind == 4:  # offsets outside of the text
        offsets = np.frombuffer(rng.randbytes(12), np.int32)
        text = pa.Array.from_buffers(pa.utf8(), 2, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"x")])
        columns = [pa.array([1, 3], pa.uint8()), text, pa.array(["", ""]), pa.array(["", ""])]
        return TERMS, [pa.RecordBatch.from_arrays(columns, schema=TERMS)], 64
    if kind == 5:  # no text, and nulls
        text = pa.Array.from_buffers(
            pa.utf8(), 1, [None, pa.py_buffer(np.array([0, 9], np.int32)), pa.py_buffer(rng.randbytes(9))]
        )
        columns = [pa.array([3], pa.uint8()), text, pa.array([None], pa.utf8()), pa.array([""])]
        return TERMS, [pa.RecordBatch.from_arrays(columns, schema=TERMS)], 64
    if kind == 6:  # another schema
        batch = pa.RecordBatch.from_pydict({f"c{i}": [rng.randbytes(9)] for i in range(rng.randrange(1, 50))})
        return batch.schema, [batch], batch.nbytes
    count = 300 if size > 1 << 16 else 20  # very many
    part = terms_table([(3, "x" * (1 << 20), "urn:p:t", "")]).to_batches()
    return TERMS, part * count, count << 20


def _exchange(client: flight.FlightClient, inputs: Inputs, rng: random.Random, held: deque[object]) -> int:
    verb = rng.choice([b"encode", b"find", b"decode", b"find", b"decode", inputs.any(rng)])
    schema, batches, size = _batches(inputs, rng)
    options = flight.FlightCallOptions(timeout=10)
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(verb[: 1 << 16]), options)
    if rng.random() < 0.1:
        writer.begin(schema)
        held.append((client, writer, reader))  # this exchange stays open, and does nothing
        return 0
    try:
        writer.begin(schema)
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        reader.read_all()
    finally:
        with suppress(pa.ArrowException):
            writer.close()
    return size


def over_flight(inputs: Inputs, port: int) -> Blow:
    """Make every call of Flight, exchanges with the dictionary's verbs, and messages and streams beyond the limits."""
    held: deque[object] = deque(maxlen=20)

    def blow(rng: random.Random) -> int:
        body = inputs.any(rng)
        client = flight.connect(f"grpc://127.0.0.1:{port}")
        options = flight.FlightCallOptions(timeout=5)
        kind = rng.randrange(12)
        try:
            if kind == 0:
                list(client.do_action(flight.Action(rng.choice(["encode", "decode", "x"]), body), options))
            elif kind == 1:
                client.do_get(flight.Ticket(body), options).read_all()
            elif kind == 2:
                client.get_flight_info(flight.FlightDescriptor.for_command(body), options)
            elif kind == 3:
                list(client.list_flights(body, options))
            elif kind == 4:
                writer, _ = client.do_put(flight.FlightDescriptor.for_command(body), TERMS, options)
                writer.close()
            else:
                return _exchange(client, inputs, rng, held)
        except (OSError, ValueError, KeyError, NotImplementedError):
            pass
        except Exception as error:
            if "arrow" not in type(error).__module__.lower():
                raise
        finally:
            if not held or held[-1][0] is not client:  # type: ignore[index]
                client.close()
        return len(body)

    return blow


def over_http2(inputs: Inputs, port: int) -> Blow:
    """Send frames of HTTP/2, some of them wrong, to a dictionary's port."""
    held: deque[socket.socket] = deque()

    def frame(rng: random.Random) -> bytes:
        payload = rng.randbytes(rng.randrange(200)) if rng.random() < 0.9 else inputs.any(rng)[: 1 << 14]
        size = len(payload) if rng.random() < 0.9 else rng.randrange(1 << 24)
        stream = rng.choice([0, 1, 3, rng.randrange(1 << 32)])
        return (
            size.to_bytes(3, "big")
            + bytes([rng.randrange(12), rng.randrange(256)])
            + stream.to_bytes(4, "big")
            + payload
        )

    def blow(rng: random.Random) -> int:
        body = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"".join(frame(rng) for _ in range(rng.randrange(50)))
        body = body[: rng.randrange(1, 40)] if rng.random() < 0.1 else body
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", port), timeout=2)
            held.append(connection)
            connection.sendall(body)
        while len(held) > 50:
            held.popleft().close()
        return len(body)

    return blow


# ---- sockets
def over_tcp(inputs: Inputs, ports: Callable[[], list[int]]) -> Blow:
    """Send garbage to any port, and keep connections open that send little."""
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


def slowly(ports: Callable[[], list[int]]) -> Blow:
    """Open hundreds of connections that send requests byte by byte, and read nothing."""
    held: deque[socket.socket] = deque()
    heads = [b"GET / HTTP/1.1\r\nx: ", b"POST /data HTTP/1.1\r\nhost: x\r\ncontent-length: 99999\r\n\r\n", b"", b"GET"]

    def blow(rng: random.Random) -> int:
        found = ports()
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", rng.choice(found)), timeout=2)
            held.append(connection)
            connection.sendall(rng.choice(heads))
        for connection in rng.sample(list(held), min(20, len(held))):
            with suppress(OSError):
                connection.send(b"x", socket.MSG_DONTWAIT)
        if len(held) > 700:
            held.popleft().close()
        return 20

    return blow
