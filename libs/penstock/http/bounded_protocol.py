"""HTTP/1.1 connections that enforce `WebLimits`. uvicorn has neither deadlines for requests nor limits on bodies.

A connection is *incomplete* from its opening until the first request has arrived completely. After each response, the
connection is again incomplete until the next request has arrived completely. The deadlines for a request's header and
body apply only to incomplete connections. Only incomplete connections are closed to make room for new connections. A
connection whose client does not read its response is closed, too. Endpoints limit their own response times. All code
here runs on the server's event loop.
"""

from __future__ import annotations

import http
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from penstock.http.web_limits import WebLimits

_LINGER_S: Final = 2.0
"""Time in s for which the server still accepts data of a refused client. If the server closed the connection earlier, a
reset could reach the client before the response.
"""
_ERRORS: Final = {400: "DataError", 503: "UnavailableError"}  # by status; other statuses are limits


class Connections:
    """State shared by the connections of a server. `incomplete`: the incomplete connections (see the module), in the
    order in which they became incomplete.
    """

    def __init__(self, limits: WebLimits) -> None:
        self.limits = limits
        self.incomplete: dict[BoundedProtocol, None] = {}
        self.held_bytes = 0

    def protocol(self, *args: Any, **named: Any) -> BoundedProtocol:
        """Return the protocol of a new connection. Takes uvicorn's arguments."""
        return BoundedProtocol(self, *args, **named)


class _Refused(h11.RemoteProtocolError):
    """A request exceeds a limit. The attribute `error_status_hint` is the status of the response."""


class _ObservedConnection(h11.Connection):
    """Passes each event to `observe` before uvicorn handles the event. Passes errors to `failed`."""

    def __init__(
        self, max_header_bytes: int, observe: Callable[[Any], None], failed: Callable[[h11.RemoteProtocolError], None]
    ) -> None:
        super().__init__(h11.SERVER, max_header_bytes)
        self._observe, self._failed = observe, failed

    def next_event(self) -> Any:
        try:
            event = super().next_event()
            self._observe(event)
        except h11.RemoteProtocolError as error:
            self._failed(error)
            raise
        return event


class BoundedProtocol(H11Protocol):
    """A connection with deadlines and a maximum size of a request's body."""

    def __init__(self, shared: Connections, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._shared, self._limits = shared, shared.limits
        self.conn = _ObservedConnection(self._limits.max_header_bytes, self._observed, self._failed)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._body_bytes = 0  # of the current request
        self._error: h11.RemoteProtocolError | None = None
        self._discards = False

    # ---- connections
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection. If there are too many connections, close the connection that has been incomplete for
        longest. If no connection is incomplete, refuse the new connection.
        """
        super().connection_made(transport)
        if len(self.connections) > self._limits.max_connections:
            oldest = next(iter(self._shared.incomplete), None)
            if oldest is None:
                self._refuse(503, f"{self._limits.max_connections} connections at a time (max_connections)")
                return
            oldest.cut()
        self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection's resources."""
        self._completed()
        self._release()
        self.resume_writing()
        super().connection_lost(exc)

    def cut(self) -> None:
        """Close the connection without a response."""
        self._completed()
        self.connections.discard(self)
        self.transport.abort()

    def _await_header(self) -> None:
        self._shared.incomplete[self] = None
        self._arm(self._limits.header_s, "header", "header_s")

    def _arm(self, seconds: float, part: str, name: str) -> None:
        self._disarm()
        message = f"the {part} of the request has not arrived within {seconds:g} s ({name})"
        self._deadline = self.loop.call_later(seconds, partial(self._refuse, 408, message))

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _completed(self) -> None:
        self._shared.incomplete.pop(self, None)
        self._disarm()

    # ---- requests
    def data_received(self, data: bytes) -> None:
        """Process received data. On a kept-alive connection, the deadline starts with the first byte of the next
        request.
        """
        if self._discards:
            return
        if self._deadline is None and self.conn.their_state is h11.IDLE:
            self._await_header()
        super().data_received(data)
        if self._deadline is None and self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._await_header()  # the body of an answered request has ended

    def _observed(self, event: Any) -> None:
        if isinstance(event, h11.Request):
            announced = [value for name, value in event.headers if name == b"content-length"]
            if announced and int(announced[0]) > self._limits.max_body_bytes:
                raise self._too_large()
            self._shared.incomplete.setdefault(self)
            self._arm(self._limits.body_s, "body", "body_s")
        elif isinstance(event, h11.Data):
            self._hold(len(event.data))
        elif isinstance(event, h11.EndOfMessage):
            self._completed()

    def _too_large(self) -> _Refused:
        return _Refused(f"a body of more than {self._limits.max_body_bytes} bytes (max_body_bytes)", 413)

    def _hold(self, size: int) -> None:
        limits, shared = self._limits, self._shared
        if self._body_bytes + size > limits.max_body_bytes:
            raise self._too_large()
        if shared.held_bytes + size > limits.max_held_body_bytes:
            held = limits.max_held_body_bytes
            raise _Refused(f"bodies of all requests have more than {held} bytes (max_held_body_bytes)", 503)
        self._body_bytes += size
        shared.held_bytes += size

    def _release(self) -> None:
        self._shared.held_bytes -= self._body_bytes
        self._body_bytes = 0

    def on_response_complete(self) -> None:
        """Finish the response and process the received part of the next request."""
        self._release()
        if not self._discards:
            super().on_response_complete()
        if self.conn.their_state is h11.IDLE:
            self._shared.incomplete.setdefault(self)  # kept alive: uvicorn's own deadline applies

    # ---- refusals
    def _failed(self, error: h11.RemoteProtocolError) -> None:
        self._error = error

    @property
    def _answers(self) -> bool:
        """Whether the response to the current request has started. Also true for a complete response whose request has
        not arrived completely.
        """
        cycle = self.cycle
        return cycle is not None and cycle.response_started and self.conn.our_state is not h11.IDLE

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request. Unless a response has started, responds with an error. Then closes the
        connection.
        """
        error = self._error
        if error is None:
            self._refuse(400, msg)
        else:
            self._refuse(error.error_status_hint, str(error))

    def _refuse(self, status: int, message: str) -> None:
        """Send an error response unless a response has started, and close the connection."""
        self._completed()
        self._unset_keepalive_if_required()
        if self._discards or self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # stops the endpoint's reads and writes
            cycle.message_event.set()
        if self._answers:
            self.cut()
            return
        self._discards = True
        self.transport.write(_answer(status, message))
        self.transport.write_eof()
        self.flow.resume_reading()
        self._deadline = self.loop.call_later(_LINGER_S, self.cut)

    # ---- responses
    def pause_writing(self) -> None:
        """Pause the response because the client reads too slowly. A client that reads nothing for `stalled_s` is
        disconnected.
        """
        super().pause_writing()
        self._watch_writing(self.transport.get_write_buffer_size())

    def _watch_writing(self, unsent: int) -> None:
        self._stalled = self.loop.call_later(self._limits.stalled_s, self._look_at_writing, unsent)

    def _look_at_writing(self, before: int) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent >= before:
            self.cut()
        else:
            self._watch_writing(unsent)

    def resume_writing(self) -> None:
        """Resume the response because the client has read enough."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()


def _answer(status: int, message: str) -> bytes:
    """Return an error response in the format of the endpoints."""
    body = json.dumps({"error": _ERRORS.get(status, "LimitError"), "message": message}).encode()
    head = f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
