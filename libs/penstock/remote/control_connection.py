"""The control connection between a query engine and a store. A message has fields, and optionally columns.

If the processes have certificates, the connection uses TLS 1.3, and both sides first present their certificates (ADR
74).

A frame consists of the length of a JSON object (u32), the object, and the columns that the object lists. Before the
first message, both sides prove that they hold the same secret. For this purpose, each side returns the HMAC of the
random challenge that the other side has sent.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import ssl
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataError, DataPlaneError

if TYPE_CHECKING:
    from penstock.remote.tls import PeerTls

MAX_HEADER_BYTES = 1 << 20
MAX_COLUMNS_BYTES = 1 << 32
_CHALLENGE_BYTES = 32
_VERSION = b"penstock-control-1"
_LEASE_MARGIN = 0.1  # permitted difference between the clock rates of two machines, as a fraction of a lease
_TYPES: dict[str, np.dtype[Any]] = {
    "u64": np.dtype("<u8"),
    "i64": np.dtype("<i8"),
    "u32": np.dtype("<u4"),
    "u8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}

Columns = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Address:
    """The address at which a store accepts control connections."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Address:
        """Parse `host:port`. ValueError if the port is not a number."""
        host, _, port = text.rpartition(":")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def lease_end(asked_s: float, lease_s: float) -> float:
    """Return a time in s of the requester's clock. Until this time, a lease is certainly valid.

    `asked_s`: time of the request. `lease_s`: duration of the lease. The store begins the lease after the request, and
    measures the duration by the store's own clock.
    """
    return asked_s + lease_s * (1 - _LEASE_MARGIN)


def end(stream: socket.socket) -> None:
    """Shut a connection down. Another thread that uses the connection then stops. OSError if the connection is already
    closed.

    This function does not call `SSLSocket.shutdown`, which would also remove TLS from the connection. The other thread
    could then send plain text.
    """
    socket.socket.shutdown(stream, socket.SHUT_RDWR)


class ControlError(DataPlaneError):
    """A control connection has failed, or a request over a control connection has failed. `fault`: "disconnected",
    "timed out", "refused" or "retired".
    """

    def __init__(self, message: str, fault: str = "disconnected") -> None:
        super().__init__(message, fault)


class Connection:
    """One authenticated connection. Only one thread at a time is allowed to use the connection. `calling`: whether this
    side has opened the connection. `handshake_s`: maximum duration of the handshake in s, including the handshake of
    TLS if `stream` has TLS.
    """

    def __init__(
        self, stream: socket.socket, secret: bytes, *, calling: bool, handshake_s: float | None = None
    ) -> None:
        self._socket = stream
        self._deadline = None if handshake_s is None else time.monotonic() + handshake_s
        timeout_s = stream.gettimeout()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if isinstance(stream, ssl.SSLSocket):
                self._shake_hands(stream)
            self._authenticate(secret, calling=calling)
        except ControlError as error:
            stream.close()
            if calling and error.fault == "disconnected" and not isinstance(stream, ssl.SSLSocket):
                raise ControlError(f"{error} (stores with certificates need PENSTOCK_TLS_* here too)") from error
            raise
        except BaseException:
            stream.close()
            raise
        self._deadline = None
        stream.settimeout(timeout_s)

    @classmethod
    def to(cls, address: Address, secret: bytes, timeout_s: float, tls: PeerTls | None = None) -> Connection:
        """Connect to a store. ControlError if the connection is not established within `timeout_s` seconds."""
        try:
            stream = socket.create_connection((address.host, address.port), timeout_s)
            if tls is not None:
                stream = tls.opened(stream, address.host)
        except OSError as error:
            raise ControlError(f"store {address} cannot be reached: {error}") from error
        return cls(stream, secret, calling=True, handshake_s=timeout_s)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def interrupt(self) -> None:
        """Make a pending `send` or `receive` fail at once. Any thread can call this method."""
        with contextlib.suppress(OSError):  # it is already closed
            end(self._socket)

    def expire_at(self, moment: float) -> None:
        """Set the deadline of all further calls of `send` and `receive`, as a time of `time.monotonic()`."""
        self._deadline = moment

    def send(self, message: dict[str, Any], columns: Columns | None = None) -> None:
        """Send a message and its columns, arrays of u64, i64, u32 or u8. ControlError if the connection fails.
        DataError if the fields take more than MAX_HEADER_BYTES.
        """
        arrays = {name: np.ascontiguousarray(column) for name, column in (columns or {}).items()}
        shapes = [[name, _NAMES[array.dtype], len(array)] for name, array in arrays.items()]
        header = json.dumps({**message, "columns": shapes}).encode()
        if len(header) > MAX_HEADER_BYTES:
            raise DataError("a control message is too large")
        try:
            self._set_timeout()
            self._socket.sendall(struct.pack("<I", len(header)) + header)
            for array in filter(len, arrays.values()):
                self._socket.sendall(array.view(np.uint8).data)
        except OSError as error:
            raise ControlError(f"the control connection broke: {error}") from error

    def receive(self) -> tuple[dict[str, Any], Columns]:
        """Wait for a message, and return its fields and columns. ControlError if the peer disconnects, does not respond
        before the deadline, or sends an invalid message.
        """
        (length,) = struct.unpack("<I", self._exactly(4))
        if length > MAX_HEADER_BYTES:
            raise ControlError(f"a control message claims {length} bytes")
        try:
            message = json.loads(self._exactly(length))
            shapes = [(str(name), _TYPES[kind], int(count)) for name, kind, count in message.pop("columns")]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ControlError(f"not a control message: {error!r}") from error
        if any(count < 0 for _, _, count in shapes) or sum(d.itemsize * n for _, d, n in shapes) > MAX_COLUMNS_BYTES:
            raise ControlError("the columns of a control message are too large")
        return message, {n: np.frombuffer(self._exactly(d.itemsize * count), d) for n, d, count in shapes}

    def ask(self, message: dict[str, Any], columns: Columns | None = None) -> dict[str, Any]:
        """Send a message and return the fields of the response. Errors: see `send` and `receive`."""
        self.send(message, columns)
        return self.receive()[0]

    def _shake_hands(self, stream: ssl.SSLSocket) -> None:
        try:
            self._set_timeout()
            stream.do_handshake()
        except TimeoutError as error:
            raise ControlError("the peer does not complete the TLS handshake in time", "timed out") from error
        except ssl.SSLCertVerificationError as error:
            raise ControlError(f"the peer's certificate is not accepted: {error.verify_message}", "refused") from error
        except ssl.SSLEOFError as error:
            raise ControlError("the peer closed the connection in the TLS handshake") from error
        except ssl.SSLError as error:
            raise ControlError(f"no TLS with the peer: {error.reason or error}", "refused") from error
        except (OSError, ValueError) as error:  # ValueError: interrupted before it began
            raise ControlError(f"the control connection broke: {error}") from error

    def _authenticate(self, secret: bytes, *, calling: bool) -> None:
        ours = secrets.token_bytes(_CHALLENGE_BYTES)
        self._send_raw(_VERSION + ours)
        greeting = self._exactly(len(_VERSION) + _CHALLENGE_BYTES)
        if not greeting.startswith(_VERSION):
            raise ControlError("the peer does not support this version of the control protocol")
        theirs = greeting[len(_VERSION) :]
        # The signed data contain the role of the signer, so that a peer cannot pass by sending the challenge back.
        roles = (b"engine", b"node") if calling else (b"node", b"engine")
        self._send_raw(hmac.digest(secret, roles[0] + theirs, "sha256"))
        if not hmac.compare_digest(self._exactly(32), hmac.digest(secret, roles[1] + ours, "sha256")):
            raise ControlError("the peer does not have the shared secret", "refused")

    def _set_timeout(self) -> None:
        if self._deadline is not None:
            self._socket.settimeout(max(1e-3, self._deadline - time.monotonic()))

    def _send_raw(self, data: bytes) -> None:
        try:
            self._set_timeout()
            self._socket.sendall(data)
        except OSError as error:
            raise ControlError(f"the control connection broke: {error}") from error

    def _exactly(self, count: int) -> bytes:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            try:
                self._set_timeout()
                got = self._socket.recv_into(view)
            except TimeoutError as error:
                raise ControlError("the peer does not answer in time", "timed out") from error
            except ssl.SSLEOFError as error:
                raise ControlError("the peer closed the connection") from error
            except ssl.SSLError as error:  # TLS 1.3: a client learns of the refusal after its handshake
                raise ControlError(f"TLS: {error.reason or error}", "refused") from error
            except OSError as error:
                raise ControlError(f"the control connection broke: {error}") from error
            if not got:
                raise ControlError("the peer closed the connection")
            view = view[got:]
        return bytes(data)
