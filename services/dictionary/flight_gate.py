"""The network endpoint of the Flight server. The gate forwards connections, and limits each request while the request
arrives.

Arrow Flight sets no message limit in gRPC. If clients could connect to the Flight server directly, this server would
buffer messages of almost 2 GiB before the call of a handler. The Flight server therefore listens on a private Unix
socket, and this gate listens on the network. The gate parses the frame headers of HTTP/2 (RFC 9113 §4.1), which are
neither compressed nor encrypted. A frame header contains the size of the frame, and identifies the request to which the
frame belongs. The gate also checks the messages in the frames of a request (`MessageCheck`). If a request exceeds a
limit, or a message is not accepted, the gate closes the connection and does not forward the bytes.

With a TLS context, a connection begins with a handshake, in which the client presents its certificate (ADR 71). The
gate connects to the Flight server after the handshake. A connection in its handshake counts towards the maximum number
of connections, and the time of the handshake counts towards `preface_s`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import StorageError
from penstock.services.dictionary.flight_messages import MessageCheck

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD_BYTES: Final = 9
_DATA, _HEADERS, _RST_STREAM, _END_STREAM, _PADDED = 0, 1, 3, 1, 8
_START_S: Final = 10.0
_LOG_S: Final = 1.0  # minimum interval between two log lines about refused clients
_LOOK_S: Final = 0.1  # minimum interval between two checks of a connection's requests

_log = logging.getLogger("penstock.dictionary")


@dataclass(frozen=True, slots=True)
class GateLimits:
    """Limits of one gate.

    - `max_message_bytes`: maximum size of one request, with all messages of the request; beyond this size, the gate
      closes the connection
    - `max_held_bytes`: maximum size of all incomplete requests; beyond this size, the gate closes connections with
      incomplete requests, the least recently active connection first
    - `max_connections`: maximum number of connections; beyond this number, the gate closes the connection that was
      inactive longest
    - `max_calls`: maximum number of incomplete requests of one connection; beyond this number, the gate closes the
      connection
    - `call_s`: time in s within which a request must be complete; otherwise the gate closes the request's connection
    - `preface_s`: time in s within which a connection must send the HTTP/2 preface; otherwise the gate closes the
      connection
    - `max_control_bytes`: maximum size of a frame other than DATA; beyond this size, the gate closes the connection
    """

    max_message_bytes: int = 96 << 20
    max_held_bytes: int = 2 * (96 << 20)
    max_connections: int = 256
    max_calls: int = 1_024
    call_s: float = 60.0
    preface_s: float = 10.0
    max_control_bytes: int = 64 << 10

    @classmethod
    def of_messages(cls, max_message_bytes: int) -> GateLimits:
        """Return limits for requests of at most `max_message_bytes`. `max_held_bytes` is twice this size. The other
        limits have their defaults.
        """
        return cls(max_message_bytes, 2 * max_message_bytes)


class FlightGate:
    """A thread that forwards connections from `host:port` to a Unix socket. If this port is 0, `port` returns the
    chosen port. StorageError if the gate cannot listen at this address. `tls`: context of the handshakes; None means no
    TLS.
    """

    def __init__(
        self,
        host: str,
        port: int,
        target: Path,
        limits: GateLimits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.tls = tls
        self._logged = float("-inf")
        self.limits = limits or GateLimits()
        self.target = str(target)
        self.held_bytes = 0
        self.connections: OrderedDict[_Incoming, None] = OrderedDict()  # least recently active first
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="flight-gate", daemon=True)
        self._thread.start()
        opening = asyncio.run_coroutine_threadsafe(self._listen(host, port), self._loop)
        try:
            self._server = opening.result(_START_S)
        except OSError as error:
            self._end()
            raise StorageError(f"cannot answer look-ups on {host}:{port}: {error}") from error
        self.port: int = self._server.sockets[0].getsockname()[1]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _listen(self, host: str, port: int) -> asyncio.Server:
        return await self._loop.create_server(lambda: _Incoming(self), host, port)

    def admit(self, connection: _Incoming) -> None:
        """Add a connection. If there are too many connections, close the connection that was inactive longest."""
        self.connections[connection] = None
        if len(self.connections) > self.limits.max_connections:
            next(iter(self.connections)).cut()

    def make_room(self) -> None:
        """While incomplete requests hold more than `max_held_bytes`, close connections with incomplete requests. The
        least recently active connections are closed first.
        """
        for connection in list(self.connections):
            if self.held_bytes <= self.limits.max_held_bytes:
                return
            if connection.holds:
                connection.cut()

    def refused(self, peer: object, error: OSError) -> None:
        """Log that a client's handshake failed, at most once per `_LOG_S`."""
        if time.monotonic() - self._logged >= _LOG_S:
            self._logged = time.monotonic()
            _log.warning("the TLS handshake with %s failed: %s", peer, error)

    def close(self) -> None:
        """Close all connections and stop the thread. Idempotent."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_START_S)
        self._end()

    async def _close(self) -> None:
        self._server.close()
        for connection in list(self.connections):
            connection.cut()
        await asyncio.sleep(0)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S)
        self._loop.close()


class _Frames:
    """Counts the bytes of one connection's requests, and checks the messages of these requests."""

    def __init__(self, gate: FlightGate) -> None:
        self._gate = gate
        self._preface = bytearray()
        self._head = bytearray()
        self._skip = 0  # bytes until the next frame header
        self._sizes: dict[int, int] = {}  # bytes of incomplete requests, by HTTP/2 stream
        self._checks: dict[int, MessageCheck] = {}  # of these requests
        self._content: MessageCheck | None = None  # of the current frame's request, if the frame is DATA
        self._begins: dict[int, float] = {}  # when these requests began, on the monotonic clock; earliest first

    @property
    def holds(self) -> bool:
        """Whether a request is incomplete."""
        return bool(self._sizes)

    @property
    def begin(self) -> float | None:
        """The time on the monotonic clock at which the oldest incomplete request began. None if there is no such
        request.
        """
        return next(iter(self._begins.values()), None)

    @property
    def begun(self) -> bool:
        """Whether the connection has sent the HTTP/2 preface."""
        return len(self._preface) == len(_PREFACE)

    def check(self, data: bytes) -> bool:
        """Count the bytes of `data`, and check the messages in these bytes. Returns False if a request, a control frame
        or the number of incomplete requests now exceeds a limit. Returns False also if a message is not accepted, or if
        the data are not HTTP/2.
        """
        at = 0
        if not self.begun:
            at = len(_PREFACE) - len(self._preface)
            self._preface += data[:at]
            if not _PREFACE.startswith(self._preface):
                return False
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                if self._content is not None and not self._content.accepts(memoryview(data)[at : at + step]):
                    return False
            else:
                step = _HEAD_BYTES - len(self._head)
                self._head += data[at : at + step]
                if len(self._head) == _HEAD_BYTES:
                    if not self._admit(bytes(self._head)):
                        return False
                    self._head.clear()
            at += step
        return True

    def _admit(self, head: bytes) -> bool:
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        self._skip = size
        self._content = None
        within = size <= self._gate.limits.max_control_bytes
        if kind == _DATA:
            self._content = self._checks.setdefault(stream, MessageCheck())
            within = not flags & _PADDED  # gRPC pads no frames
        if kind in (_DATA, _HEADERS):
            within &= self._arrives(stream, size if kind == _DATA else 0)
        if kind == _RST_STREAM or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
            self._ended(stream)
        return within

    def _arrives(self, stream: int, size: int) -> bool:
        """Count `size` bytes of the request on an HTTP/2 stream. Returns False if the request is now larger than
        `max_message_bytes`, or if the connection has more than `max_calls` incomplete requests.
        """
        limits = self._gate.limits
        self._begins.setdefault(stream, time.monotonic())
        self._sizes[stream] = self._sizes.get(stream, 0) + size
        self._gate.held_bytes += size
        return self._sizes[stream] <= limits.max_message_bytes and len(self._sizes) <= limits.max_calls

    def _ended(self, stream: int) -> None:
        self._begins.pop(stream, None)
        self._checks.pop(stream, None)
        self._gate.held_bytes -= self._sizes.pop(stream, 0)

    def close(self) -> None:
        """Remove all requests of the connection."""
        for stream in list(self._sizes):
            self._ended(stream)


class _Outgoing(asyncio.Protocol):
    """The connection to the Flight server."""

    def __init__(self, incoming: _Incoming) -> None:
        self._incoming = incoming

    def data_received(self, data: bytes) -> None:
        self._incoming.transport.write(data)

    def pause_writing(self) -> None:
        self._incoming.transport.pause_reading()

    def resume_writing(self) -> None:
        self._incoming.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._incoming.transport.close()


class _Incoming(asyncio.Protocol):
    """A client's connection."""

    transport: asyncio.Transport

    def __init__(self, gate: FlightGate) -> None:
        self._gate = gate
        self._frames = _Frames(gate)
        self._target: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._early = b""  # data that arrived before the connection to the Flight server
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._gate.limits.preface_s, self._look_at_preface, loop)
        self._gate.admit(self)
        transport.pause_reading()
        self._opening = loop.create_task(self._open(loop))

    async def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._gate.tls is not None and not await self._secured(loop, self._gate.tls):
            return
        try:
            self._target, _ = await loop.create_unix_connection(lambda: _Outgoing(self), self._gate.target)
        except OSError:
            self.transport.abort()
            return
        if self.transport.is_closing():
            self._target.abort()
            return
        early, self._early = self._early, b""
        if early:
            self.data_received(early)
        if not self.transport.is_closing():
            self.transport.resume_reading()

    async def _secured(self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext) -> bool:
        """Perform the TLS handshake, and then pause reading from the connection. Returns False if the handshake
        failed.
        """
        raw, limit_s = self.transport, self._gate.limits.preface_s
        try:
            secured = await loop.start_tls(raw, self, context, server_side=True, ssl_handshake_timeout=limit_s)
        except OSError as error:
            if self in self._gate.connections:  # not closed by the gate
                self._gate.refused(raw.get_extra_info("peername"), error)
            secured = None
        if secured is None or self not in self._gate.connections:
            raw.abort()
            self.connection_lost(None)  # asyncio does not call it for a failed handshake
            return False
        self.transport = secured
        secured.pause_reading()
        return True

    def _look_at_preface(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._frames.begun:
            self._look_at_calls(loop)
        else:
            self.cut()

    def _look_at_calls(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connection if a request is overdue; otherwise schedule the next check."""
        limits, now = self._gate.limits, time.monotonic()
        begin = self._frames.begin
        if begin is not None and now - begin >= limits.call_s:
            self.cut()
            return
        due_s = limits.call_s if begin is None else begin + limits.call_s - now
        self._deadline = loop.call_later(max(due_s, _LOOK_S), self._look_at_calls, loop)

    @property
    def holds(self) -> bool:
        """Whether a request is incomplete."""
        return self._frames.holds

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._gate.connections.move_to_end(self)
        if self._target is None:
            self._early += data  # at most one TLS read, because the next step after the handshake pauses reading
            return
        if not self._frames.check(data):
            self.cut()
            return
        self._gate.make_room()
        self._target.write(data)

    def pause_writing(self) -> None:
        if self._target is not None:
            self._target.pause_reading()

    def resume_writing(self) -> None:
        if self._target is not None:
            self._target.resume_reading()

    def cut(self) -> None:
        """Close the connections to the client and to the Flight server at once."""
        self._gate.connections.pop(self, None)
        self._frames.close()
        self.transport.abort()
        if self._target is not None:
            self._target.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._gate.connections.pop(self, None)
        self._frames.close()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._target is not None:
            self._target.abort()
