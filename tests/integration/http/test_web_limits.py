"""Limits on connections, headers and bodies, against real sockets (docs/operations.md, "Limits of HTTP")."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from penstock.http.error_responses import body_of, errors_as_json
from penstock.http.web_limits import WebLimits
from penstock.http.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

LIMITS = WebLimits(
    max_connections=50,
    header_s=0.5,
    body_s=1.0,
    stalled_s=0.5,
    max_header_bytes=8_192,
    max_body_bytes=1 << 20,
    max_held_body_bytes=3 << 20,
)
HEAD = b"POST /size HTTP/1.1\r\nhost: x\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"


class Served:
    """A server with an endpoint that reads bodies, one that keeps them, one that reads none, and one that streams."""

    def __init__(self, limits: WebLimits) -> None:
        self.go_on = threading.Event()
        self.read = 0
        self.streamed = threading.Event()  # set: the stream has ended
        routes = [
            Route("/", self.hello),
            Route("/size", errors_as_json(self.size), methods=["POST"]),
            Route("/held", errors_as_json(self.held), methods=["POST"]),
            Route("/stream", self.stream),
        ]
        self.server = WebServer(Starlette(routes=routes), "127.0.0.1", 0, limits)

    @staticmethod
    async def hello(_) -> Response:
        return JSONResponse("hello")

    @staticmethod
    async def size(request) -> Response:
        return JSONResponse(len(await body_of(request)))

    async def held(self, request) -> Response:
        size = len(await body_of(request))
        self.read += size
        await run_in_threadpool(self.go_on.wait, 30)
        return JSONResponse("released")

    async def stream(self, _) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 65_536
                    await asyncio.sleep(0)
            finally:
                self.streamed.set()

        return StreamingResponse(parts())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=10)

    def ask(
        self, method: str = "GET", path: str = "/", body: bytes | None = None, **headers: str
    ) -> tuple[int, object]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found


@contextmanager
def serving(limits: WebLimits = LIMITS) -> Iterator[Served]:
    made = Served(limits)
    try:
        yield made
    finally:
        made.go_on.set()
        made.server.stop()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as made:
        yield made


def answer(connection: socket.socket) -> tuple[int, str]:
    """The status and message of an error, read to the end of the connection."""
    found = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            found += part
    head, _, body = found.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["message"]


def dribble(connection: socket.socket, part: bytes, seconds: float = 10.0) -> float:
    """Send a part every 0.1 s until the server answers; return after how long it did."""
    begin = time.monotonic()
    connection.settimeout(0.1)
    while time.monotonic() < begin + seconds:
        with suppress(OSError):
            connection.sendall(part)
        with suppress(TimeoutError):
            connection.recv(1, socket.MSG_PEEK)
            break
    connection.settimeout(10)
    return time.monotonic() - begin


def test_a_header_that_comes_byte_by_byte_has_a_deadline(served):
    with served.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        assert 0.3 < dribble(connection, b"x") < 2
        status, message = answer(connection)
        assert (status, "header_s" in message) == (408, True)


def test_a_connection_that_sends_nothing_has_the_same_deadline(served):
    with served.connect() as connection:
        assert answer(connection)[0] == 408


def test_the_next_request_of_a_connection_has_the_deadline_too(served):
    with served.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        assert dribble(connection, b"x") < 2
        assert answer(connection)[0] == 408


def test_a_body_that_comes_byte_by_byte_has_a_deadline(served):
    with served.connect() as connection:
        connection.sendall(HEAD + b"content-length: 1000\r\n\r\n")
        assert 0.8 < dribble(connection, b"x") < 3
        status, message = answer(connection)
        assert (status, "body_s" in message) == (408, True)
    with served.connect() as connection:
        connection.sendall(HEAD + CHUNKED)
        assert dribble(connection, b"1\r\nx\r\n") < 3
        assert answer(connection)[0] == 408


def test_a_body_that_no_endpoint_reads_has_a_deadline(served):
    with served.connect() as connection:
        connection.sendall(b"POST /none HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 404")
        begin = time.monotonic()
        with suppress(OSError):
            while time.monotonic() < begin + 10:
                connection.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() - begin < 3, "it is cut off"


def test_a_large_body_is_refused_when_it_is_announced(served):
    for size in (b"1048577", b"9" * 19):
        with served.connect() as connection:
            connection.sendall(HEAD + b"content-length: " + size + b"\r\n\r\n")
            status, message = answer(connection)
            assert (status, "max_body_bytes" in message) == (413, True)


def test_a_client_that_sends_a_large_body_reads_why_it_is_refused(served):
    status, body = served.ask("POST", "/size", b"x" * (8 << 20))
    assert (status, body["error"]) == (413, "LimitError")


def test_a_body_without_an_end_is_refused_at_the_limit(served):
    with served.connect() as connection:
        connection.sendall(HEAD + CHUNKED)
        begin, sent = time.monotonic(), 0
        with suppress(OSError):
            while time.monotonic() < begin + 10:
                sent += connection.send(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        assert time.monotonic() - begin < 8, "it is cut off"
    with served.connect() as connection:
        connection.sendall(HEAD + CHUNKED + (b"10000\r\n" + b"x" * 65_536 + b"\r\n") * 17)
        assert answer(connection)[0] == 413


def test_a_huge_header_is_refused(served):
    for header in (b"x: " + b"y" * 70_000, b"".join(b"x%d: y\r\n" % i for i in range(10_000))):
        with served.connect() as connection:
            with suppress(OSError):
                connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n" + header)
            assert answer(connection)[0] == 431


def test_what_is_no_request_is_refused(served):
    for text in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", HEAD + b"content-length: -1\r\n\r\n"):
        with served.connect() as connection:
            connection.sendall(text)
            assert answer(connection)[0] == 400
    with served.connect() as connection:
        connection.sendall(HEAD + CHUNKED + b"zz\r\n")
        assert answer(connection)[0] == 400


def test_bodies_of_all_requests_are_bounded_and_released():
    with serving() as made, ExitStack() as stack:
        body = b"x" * (1 << 20)
        head = b"POST /held HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\n\r\n"
        held = [stack.enter_context(made.connect()) for _ in range(3)]
        for connection in held:
            connection.sendall(head + body)
        deadline = time.monotonic() + 10
        while made.read < 3 << 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert made.read == 3 << 20
        status, refused = made.ask("POST", "/size", b"x" * 1000)
        assert (status, "max_held_body_bytes" in refused["message"]) == (503, True)
        assert made.ask() == (200, "hello")
        made.go_on.set()
        for connection in held:
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert made.ask("POST", "/size", b"x" * (1 << 20)) == (200, 1 << 20)


def test_a_thousand_idle_connections_keep_no_request_waiting():
    with serving(replace(LIMITS, header_s=30.0)) as made, ExitStack() as stack:
        for number in range(1_000):
            connection = stack.enter_context(made.connect())
            connection.sendall([b"", b"GET", HEAD, HEAD + b"content-length: 9\r\n\r\n"][number % 4])
        begin = time.monotonic()
        for _ in range(20):
            assert made.ask() == (200, "hello")
        assert time.monotonic() - begin < 20  # less than header_s
        assert len(made.server.connections.incomplete) <= LIMITS.max_connections


def test_where_all_connections_are_answered_a_further_one_is_refused():
    with serving(replace(LIMITS, max_connections=2)) as made, ExitStack() as stack:
        for _ in range(2):
            connection = stack.enter_context(made.connect())
            connection.sendall(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
            connection.recv(1)
        with made.connect() as connection:
            status, message = answer(connection)
            assert (status, "max_connections" in message) == (503, True)


def test_a_client_that_reads_nothing_is_cut_off(served):
    with served.connect() as connection:
        connection.sendall(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
        assert served.streamed.wait(5)


def test_a_client_that_reads_slowly_is_not_cut_off(served):
    with served.connect() as connection:
        connection.sendall(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert connection.recv(1 << 20)
            time.sleep(0.05)


def test_pipelined_requests_are_all_answered(served):
    with served.connect() as connection:
        connection.sendall(
            b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 5 + b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        found = b""
        while part := connection.recv(1 << 16):
            found += part
        assert found.count(b"HTTP/1.1 200") == 6


def test_connections_that_are_closed_are_forgotten():
    with serving() as made:
        for _ in range(100):
            assert made.ask() == (200, "hello")
            with made.connect() as connection:
                connection.sendall(HEAD + b"content-length: 100\r\n\r\nabc")
        deadline = time.monotonic() + 5
        while made.server.connections.incomplete and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not made.server.connections.incomplete
        assert made.server.connections.held_bytes == 0
