"""The engine's side of fork-join (ADR 18). The engine sends plan fragments and rows to the stores that own the keys of
the rows. The stores return the extended rows.

Rows are sent as an Arrow IPC stream of one record batch. The batch has one column of uint64 per slot. The name of the
column is the number of the slot.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.core import _native as native
from penstock.errors import DataError, LimitError, StorageError
from penstock.remote.control_connection import Connection, ControlError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from penstock.core._native import ForkPart, Ids
    from penstock.remote.control_connection import Address, Columns
    from penstock.remote.tls import PeerTls

MAX_ROWS_BYTES = 1 << 30
"""Maximum size of one record batch, in either direction."""
_PAUSE_S = 0.05  # s between two attempts to connect to a store
_GRACE_S = 1.0  # additional time in s for the response of a store whose time is over


def rows_to_arrow(slots: Sequence[int], columns: Sequence[Ids]) -> NDArray[np.uint8]:
    """Return columns of ids as the bytes of an Arrow stream. LimitError above MAX_ROWS_BYTES."""
    if sum(column.nbytes for column in columns) > MAX_ROWS_BYTES:
        raise LimitError(f"the rows of a fork take more than {MAX_ROWS_BYTES} bytes")
    arrays = [_array(column) for column in columns]
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(slot) for slot in slots])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return np.frombuffer(sink.getvalue(), np.uint8)


def rows_from_arrow(data: NDArray[np.uint8]) -> tuple[list[int], list[Ids]]:
    """Return the slots and columns in the bytes of an Arrow stream. DataError if the stream is invalid."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)
        slots = [int(name) for name in batch.schema.names]
    except (pa.ArrowException, StopIteration, ValueError) as error:
        raise DataError(f"not rows of a fork: {error}") from error
    if any(array.type != pa.uint64() or array.null_count for array in batch.columns):
        raise DataError("the columns of a fork are not ids")
    return slots, [_column(array) for array in batch.columns]


# Do not use pyarrow's own conversions: they import pandas if it is installed, which takes seconds in every process.
def _array(column: Ids) -> pa.Array:
    return pa.Array.from_buffers(pa.uint64(), len(column), [None, pa.py_buffer(np.ascontiguousarray(column))])


def _column(array: pa.Array) -> Ids:
    data = array.buffers()[1]
    return np.frombuffer(data, np.uint64, len(array), array.offset * 8) if len(array) else np.empty(0, np.uint64)


class Forking:
    """Executes the forks of an engine's plans in the stores, one fork at a time. Opens one connection per place, at the
    first use of the place.

    The rows of a fork are divided among *places*. Each place is one shard. The address of a place is the address of the
    store that holds the shard at present. `owners`: the place of each shard. `address_of` returns the address of a
    place, or raises DataPlaneError. `timeout_s`: maximum duration of a fork in s.
    """

    def __init__(
        self,
        owners: Sequence[int],
        address_of: Callable[[int], Address],
        secret: bytes,
        timeout_s: float,
        tls: PeerTls | None = None,
    ) -> None:
        self._owners = list(owners)
        self._address_of = address_of
        self._secret, self._tls = secret, tls
        self._timeout_s = timeout_s
        self._connections: dict[int, tuple[Address, Connection]] = {}
        self._using = threading.Lock()
        self.rows = 0  # number of rows that were sent
        self.forks = 0

    @property
    def places(self) -> int:
        """The number of places among which the rows of a fork are divided."""
        return max(self._owners) + 1

    def forker(self, view: native.Source, fragments: Mapping[int, str]) -> native.Forker | None:
        """Return the object that executes the forks of a plan over `view`, or None if the plan has no forks.
        `fragments`: for the node id of each fork, its fragment as JSON.
        """
        if not fragments:
            return None
        snapshot, commits = native.visible_in(view)
        excluded = np.array(commits, np.uint32)

        def run(fork: int, parts: list[ForkPart], seconds_left: float, bytes_left: int) -> list[ForkPart]:
            asked = {"do": "fork", "plan": fragments[fork], "snapshot": snapshot}
            asked |= {"timeout_s": seconds_left, "memory": bytes_left}
            with self._using:
                return self._run(asked, excluded, parts, min(seconds_left or self._timeout_s, self._timeout_s))

        return native.Forker(self._owners, run)

    def interrupt(self, address: Address) -> None:
        """Interrupt a fork that waits for the store at `address`, so that the fork fails at once. Call this method when
        the store has failed. Any thread can call this method.
        """
        for reached, connection in list(self._connections.values()):
            if reached == address:
                connection.interrupt()

    def close(self) -> None:
        """Close all connections."""
        with self._using:
            self._drop(list(self._connections))

    def _run(
        self, asked: dict[str, Any], excluded: NDArray[np.uint32], parts: Sequence[ForkPart], seconds: float
    ) -> list[ForkPart]:
        deadline = time.monotonic() + seconds + _GRACE_S
        waiting = [place for place, part in enumerate(parts) if part is not None]
        found: list[ForkPart] = [None] * len(parts)
        try:
            for place, part in enumerate(parts):
                if part is not None:
                    columns: Columns = {"excluded": excluded, "rows": rows_to_arrow(*part)}
                    self._connection(place, deadline).send({**asked, "place": place}, columns)
                    self.rows += len(part[1][0])
            for place in list(waiting):
                found[place] = self._receive(place, deadline)
                waiting.remove(place)
        finally:
            self._drop(waiting)  # so that responses that arrive later are not read
        self.forks += 1
        return found

    def _connection(self, place: int, deadline: float) -> Connection:
        address = self._address_of(place)
        if place in self._connections and self._connections[place][0] != address:
            self._drop([place])  # the shard has moved
        if place not in self._connections:
            self._connections[place] = self._connected(place, deadline)
        _, connection = self._connections[place]
        connection.expire_at(deadline)
        return connection

    def _connected(self, place: int, deadline: float) -> tuple[Address, Connection]:
        """Return a new connection and its address. Retries until the deadline, because the store may be restarting."""
        while True:
            address = self._address_of(place)
            try:
                return address, Connection.to(address, self._secret, self._timeout_s, self._tls)
            except ControlError as error:
                if error.fault == "refused" or time.monotonic() + _PAUSE_S > deadline - _GRACE_S:
                    raise
                time.sleep(_PAUSE_S)

    def _receive(self, place: int, deadline: float) -> ForkPart:
        address, connection = self._connections[place]
        connection.expire_at(deadline)
        answer, columns = connection.receive()
        match answer.get("kind"):
            case None:
                return rows_from_arrow(columns["rows"])
            case "LimitError":
                raise LimitError(answer["error"])
            case "StorageError":  # the store lags, has restarted or has released the shard: the evaluation is retried
                raise ControlError(answer["error"], "retired")
            case _:
                raise StorageError(f"{address} refuses a fork: {answer['error']}")

    def _drop(self, places: Sequence[int]) -> None:
        for place in places:
            if (reached := self._connections.pop(place, None)) is not None:
                reached[1].close()
