"""The control server of a store: one thread per connection. An engine has one connection for leases, and one connection
per shard for forks.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from penstock.errors import PenstockError
from penstock.remote.control_connection import Address, Connection, ControlError, end

if TYPE_CHECKING:
    from penstock.remote.control_connection import Columns
    from penstock.remote.fragments import Fragments
    from penstock.remote.tls import PeerTls

MAX_CONNECTIONS = 256
_HANDSHAKE_S = 5.0
_EXPIRE_EVERY_S = 1.0
_PAUSE_S = 0.1  # pause in s after an accept that has failed
_LOG_S = 1.0  # minimum interval in s between two log lines about refused clients
_CLOSE_S = 5.0  # time in s for which `run` waits at its end for requests in progress

_log = logging.getLogger(__name__)


class Served(Protocol):
    """The object to which a control server passes requests."""

    def expire(self) -> None:
        """Release expired leases."""

    def fragments_at(self, place: int) -> Fragments:
        """Return the executor of plan fragments at a place. A place is the number of a shard (see `Forking`).
        StorageError if this process does not have the shard.
        """


N = TypeVar("N", bound=Served)


class ControlServer(Generic[N]):
    """Accepts connections until `close`. If a request fails, the response contains the error. An invalid message ends
    the connection. `tls`: None means no TLS.
    """

    def __init__(
        self, served: N, host: str, port: int, secret: bytes, data_port: int, tls: PeerTls | None = None
    ) -> None:
        self._served = served
        self._secret, self._tls = secret, tls
        self._warned = float("-inf")
        self.data_port = data_port
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._closing = False
        # changed by the thread of `run` and by the threads of the connections
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._listener = socket.create_server((host, port))
        self._listener.settimeout(_EXPIRE_EVERY_S)
        self.address = Address(host, self._listener.getsockname()[1])

    def run(self) -> None:
        """Serve in the calling thread, until another thread or a signal handler calls `close`. Then end all
        connections.
        """
        try:
            self._accept()
        finally:
            self._end_connections()

    def _accept(self) -> None:
        while not self._closing:
            try:
                stream, _ = self._listener.accept()
                if self._tls is not None:
                    stream = self._tls.accepted(stream)
            except TimeoutError:
                self._served.expire()
                continue
            except OSError as error:
                if self._closing:
                    return
                _log.warning(
                    "a connection could not be accepted: %s", error
                )  # for example, no file descriptors are left
                time.sleep(_PAUSE_S)
                continue
            if not self._places.acquire(blocking=False):
                stream.close()
                continue
            thread = threading.Thread(target=self._serve, args=(stream,), daemon=True)
            self._connections[stream] = thread
            thread.start()

    def close(self) -> None:
        """Stop listening, so that `run` ends."""
        self._closing = True
        with contextlib.suppress(OSError):  # it is already closed
            self._listener.shutdown(socket.SHUT_RD)  # wakes the thread that waits in accept()
        self._listener.close()

    def _end_connections(self) -> None:
        """End all connections, and wait for their threads, because the threads use the served object."""
        until = time.monotonic() + _CLOSE_S
        threads = []
        for stream, thread in list(self._connections.items()):
            with contextlib.suppress(OSError):  # it is already closed
                end(stream)
            threads.append(thread)
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _serve(self, stream: socket.socket) -> None:
        try:
            stream.settimeout(None)
            connection = Connection(stream, self._secret, calling=False, handshake_s=_HANDSHAKE_S)
            while True:
                connection.send(*self._answer(*connection.receive()))
        except ControlError as error:
            self._log_end(error)
        finally:
            self._connections.pop(stream)
            stream.close()
            self._places.release()

    def _log_end(self, error: ControlError) -> None:
        if error.fault == "refused" and time.monotonic() - self._warned >= _LOG_S:
            self._warned = time.monotonic()
            _log.warning("a client is refused: %s", error)
        else:
            _log.info("an engine has disconnected: %s", error)

    def _answer(self, message: dict[str, Any], columns: Columns) -> tuple[dict[str, Any], Columns]:
        try:
            return self._do_with_columns(message, columns)
        except PenstockError as error:
            return {"error": str(error), "kind": type(error).__name__}, {}
        except MemoryError:
            return {"error": "the store ran out of memory", "kind": "LimitError"}, {}
        except (KeyError, TypeError, ValueError) as error:
            return {"error": f"not a request: {error!r}", "kind": "DataError"}, {}

    def _do_with_columns(self, message: dict[str, Any], columns: Columns) -> tuple[dict[str, Any], Columns]:
        if message["do"] == "fork":
            fragments = self._served.fragments_at(int(message["place"]))
            return {}, {"rows": fragments.run(message, columns["excluded"], columns["rows"])}
        return self._do(message, columns), {}

    def _do(self, message: dict[str, Any], columns: Columns) -> dict[str, Any]:
        raise NotImplementedError
