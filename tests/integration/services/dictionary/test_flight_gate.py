"""The dictionary's network door bounds requests while they arrive, whatever client sends them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from penstock.core import _native as native
from penstock.services.dictionary.flight_gate import GateLimits
from penstock.services.dictionary.flight_server import DictionaryServer
from penstock.term_ids.flight_terms import FlightTerms
from penstock.term_ids.term_tables import TERMS as SCHEMA
from penstock.term_ids.term_tables import terms_table

MIB = 1 << 20
LIMITS = GateLimits(
    max_message_bytes=8 * MIB, max_held_bytes=20 * MIB, max_connections=20, max_calls=4, call_s=2.0, preface_s=0.5
)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GOOD = [(1, "urn:x:1", "", ""), (3, "one", "http://www.w3.org/2001/XMLSchema#string", "")]


class Terms:
    """A dictionary service in this process."""

    def __init__(self):
        self.own = native.Dictionary()

    def encode(self, terms):
        return self.own.intern_many(list(terms))


def frame(kind: int, stream: int, payload: bytes = b"", flags: int = 0, size: int | None = None) -> bytes:
    size = len(payload) if size is None else size
    return size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


@pytest.fixture
def server():
    terms = Terms()
    made = DictionaryServer("grpc://127.0.0.1:0", lambda: terms, LIMITS)
    yield made
    made.shutdown()


def connect(server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def ended(connection: socket.socket) -> bool:
    """Whether the server closes the connection within the socket's time."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def answers(server) -> None:
    """What honest callers ask is answered, soon."""
    begin = time.monotonic()
    client = FlightTerms([f"grpc://127.0.0.1:{server.port}"])
    assert len(client.encode(GOOD)) == len(GOOD)
    client.close()
    assert time.monotonic() - begin < 5


def settles(server) -> None:
    """Nothing is counted once its clients have gone."""
    deadline = time.monotonic() + 5
    while (server._gate.held_bytes or server._gate.connections) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (server._gate.held_bytes, len(server._gate.connections)) == (0, 0)


SERVER = """
import sys
from integration.services.dictionary.test_flight_gate import LIMITS, Terms
from penstock.services.dictionary.flight_server import DictionaryServer
terms = Terms()
server = DictionaryServer("grpc://127.0.0.1:0", lambda: terms, LIMITS)
print(server.port, flush=True)
sys.stdin.read()
server.shutdown()
"""


class OwnProcess:
    """A server in a process of its own."""

    def __init__(self):
        path = os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
        command, environment = [sys.executable, "-c", SERVER], {**os.environ, "PYTHONPATH": path}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def peak_bytes(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

    def close(self):
        self.process.communicate(timeout=30)


def one_message(port: int, size: int) -> None:
    """Send one Flight message of so many bytes."""
    text = pa.array([b"x" * size]).cast(pa.utf8())
    columns = [pa.array([3], pa.uint8()), text, pa.array(["urn:x:t"]), pa.array([""])]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    with flight.connect(f"grpc://127.0.0.1:{port}") as client:
        options = flight.FlightCallOptions(timeout=60)
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"encode"), options)
        try:
            writer.begin(SCHEMA)
            writer.write_batch(batch)
            writer.done_writing()
            reader.read_all()
        finally:
            with suppress(pa.ArrowException):
                writer.close()


def send(port: int, batch: pa.RecordBatch, codec: str | None, **options) -> None:
    """Send a batch, compressed by Arrow (`codec`) or by gRPC."""
    with flight.connect(f"grpc://127.0.0.1:{port}", **options) as client:
        command = flight.FlightDescriptor.for_command(b"encode")
        writer, reader = client.do_exchange(command, flight.FlightCallOptions(timeout=60))
        try:
            writer.begin(SCHEMA, options=pa.ipc.IpcWriteOptions(compression=codec))
            writer.write_batch(batch)
            writer.done_writing()
            reader.read_all()
        finally:
            with suppress(pa.ArrowException):
                writer.close()


@pytest.mark.parametrize("compressed_by", ["arrow", "grpc"])
def test_a_compressed_message_is_cut_off_before_it_is_decompressed(compressed_by):
    """Sixty kilobytes, which expand to 600 MB."""
    columns = [pa.array([3] * 60, pa.uint8()), pa.array(["x" * 10_000_000] * 60), pa.array(["urn:x:t"] * 60)]
    batch = pa.RecordBatch.from_arrays([*columns, pa.array([""] * 60)], schema=SCHEMA)
    options = {} if compressed_by == "arrow" else {"generic_options": [("grpc.default_compression_algorithm", 2)]}
    server = OwnProcess()
    try:
        answers(server)
        before = server.peak_bytes()
        with pytest.raises(flight.FlightUnavailableError):
            send(server.port, batch, "zstd" if compressed_by == "arrow" else None, **options)
        assert server.peak_bytes() < before + (50 << 20)
        answers(server)
    finally:
        server.close()


def test_one_message_beyond_the_limit_is_cut_off_before_it_is_held():
    server = OwnProcess()
    try:
        answers(server)
        one_message(server.port, LIMITS.max_message_bytes - MIB)
        idle = server.peak_bytes()
        for size in (LIMITS.max_message_bytes + MIB, 200 * MIB):
            with pytest.raises(pa.ArrowException):
                one_message(server.port, size)
        answers(server)
        assert server.peak_bytes() - idle < 4 * LIMITS.max_message_bytes
    finally:
        server.close()


def test_an_endless_stream_of_raw_frames_is_cut_off(server):
    with connect(server) as connection:
        connection.sendall(PREFACE + frame(4, 0))
        sent = 0
        with suppress(OSError):
            while sent < 1 << 30:
                connection.sendall(frame(0, 1, b"x" * 16_384))
                sent += 16_384
        assert sent < 64 * MIB, "the limit, and what sockets hold"
        assert ended(connection)
    answers(server)
    settles(server)


def test_a_frame_is_refused_by_the_size_that_it_announces(server):
    for kind, size in ((0, LIMITS.max_message_bytes + 1), (0, 0xFFFFFF), (1, 1 << 20), (9, 0xFFFFFF), (77, 1 << 17)):
        with connect(server) as connection:
            connection.sendall(PREFACE + frame(kind, 1, size=size))
            assert ended(connection)
    answers(server)


def test_requests_beyond_the_number_of_one_connection_are_refused(server):
    with connect(server) as connection:
        connection.sendall(PREFACE + b"".join(frame(0, stream, b"x") for stream in range(1, 100, 2)))
        assert ended(connection)
    settles(server)


def test_other_protocols_are_refused_at_once_and_idle_connections_after_a_deadline(server):
    for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nXX"):
        with connect(server) as connection:
            connection.sendall(text)
            assert ended(connection)
    for text in (b"", b"PRI * "):
        with connect(server) as connection:
            begin = time.monotonic()
            connection.sendall(text)
            assert ended(connection)
            assert 0.3 < time.monotonic() - begin < 3
    answers(server)


def test_requests_that_stand_still_make_room_for_others(server):
    with ExitStack() as stack:
        stalled = [stack.enter_context(connect(server)) for _ in range(5)]
        for connection in stalled:
            with suppress(OSError):
                connection.sendall(PREFACE + frame(4, 0) + frame(0, 1, size=6 * MIB) + b"x" * 65_536)
                time.sleep(0.05)
        assert server._gate.held_bytes <= LIMITS.max_held_bytes
        assert ended(stalled[0])
        answers(server)
    settles(server)


def test_a_request_that_does_not_arrive_in_time_is_cut_off(server):
    """Each takes a thread of the server."""
    writers = []
    for sent in (False, True):
        client = flight.connect(f"grpc://127.0.0.1:{server.port}")
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"encode"))
        writer.begin(SCHEMA)
        if sent:
            writer.write_batch(terms_table(GOOD).to_batches()[0])
        writers.append((client, writer, reader))
    begin = time.monotonic()
    for client, writer, reader in writers:
        with pytest.raises(flight.FlightUnavailableError):
            reader.read_all()
        with suppress(pa.ArrowException):
            writer.close()
        client.close()
    assert time.monotonic() - begin < 8
    answers(server)
    settles(server)


def test_hundreds_of_connections_keep_no_request_waiting(server):
    with ExitStack() as stack:
        for number in range(300):
            connection = stack.enter_context(connect(server))
            with suppress(OSError):
                connection.sendall([b"", PREFACE, PREFACE + frame(4, 0), PREFACE + b"\x00"][number % 4])
        answers(server)
        assert len(server._gate.connections) <= LIMITS.max_connections
    settles(server)


def test_garbage_after_the_preface_ends_nothing(server):
    rng = np.random.default_rng(1)
    for _ in range(100):
        with connect(server) as connection, suppress(OSError):
            connection.sendall(PREFACE + rng.bytes(int(rng.integers(1, 5_000))))
    answers(server)
    settles(server)


def test_requests_within_the_limit_pass_whole(server):
    client = FlightTerms([f"grpc://127.0.0.1:{server.port}"])
    terms = [(3, f"{number}" + "x" * 1_000, "urn:x:t", "") for number in range(20_000)]
    assert len(set(client.encode(terms[:6_000]).tolist())) == 6_000
    client.close()
