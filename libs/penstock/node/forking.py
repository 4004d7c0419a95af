"""Fork-join (DESIGN §6.6): steps of a plan go to the nodes that own their keys, with the rows that they extend.

Rows travel as Arrow IPC streams of one record batch: a uint64 column for each slot, named by its number.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.errors import DataError, LimitError, StorageError
from penstock.node.control import Connection, ControlError
from penstock.store import _native as native

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from penstock.node.control import Address, Columns
    from penstock.store._native import ForkPart, Ids

MAX_ROWS_BYTES = 1 << 30
"""Of one record batch, there or back."""
_PAUSE_S = 0.05  # between attempts to reach a node
_GRACE_S = 1.0  # for a node to say itself that an evaluation's time is over


def rows_to_arrow(slots: Sequence[int], columns: Sequence[Ids]) -> NDArray[np.uint8]:
    """Columns of equal length as the bytes of an Arrow stream. LimitError beyond MAX_ROWS_BYTES."""
    if sum(column.nbytes for column in columns) > MAX_ROWS_BYTES:
        raise LimitError(f"the rows of a fork take more than {MAX_ROWS_BYTES} bytes")
    arrays = [_array(column) for column in columns]
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(slot) for slot in slots])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return np.frombuffer(sink.getvalue(), np.uint8)


def rows_from_arrow(data: NDArray[np.uint8]) -> tuple[list[int], list[Ids]]:
    """Return slots and columns of such a stream; DataError where it is none."""
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


# pyarrow's own conversions import pandas where that is installed: seconds, in every process.
def _array(column: Ids) -> pa.Array:
    return pa.Array.from_buffers(pa.uint64(), len(column), [None, pa.py_buffer(np.ascontiguousarray(column))])


def _column(array: pa.Array) -> Ids:
    data = array.buffers()[1]
    return np.frombuffer(data, np.uint64, len(array), array.offset * 8) if len(array) else np.empty(0, np.uint64)


class Forking:
    """The engine's side. One connection to each node, made when it is first needed; one evaluation at a time.

    owners: of each shard the node's place among the addresses. timeout_s: how long a node may take where the evaluation
    itself has no time limit.
    """

    def __init__(self, addresses: Sequence[Address], secret: bytes, owners: Sequence[int], timeout_s: float) -> None:
        self._addresses = list(addresses)
        self._secret = secret
        self._owners = list(owners)
        self._timeout_s = timeout_s
        self._connections: dict[int, Connection] = {}
        self._using = threading.Lock()
        self.rows = 0  # that were shipped so far
        self.forks = 0

    def forker(self, view: native.Source, fragments: Mapping[int, str]) -> native.Forker | None:
        """What runs the forks of one plan over a view of the nodes' graph; None where the plan has none."""
        if not fragments:
            return None
        snapshot, commits = native.visible_in(view)
        excluded = np.array(commits, np.uint32)

        def run(fork: int, parts: list[ForkPart], seconds_left: float, bytes_left: int) -> list[ForkPart]:
            asked = {"do": "fork", "plan": fragments[fork], "snapshot": snapshot}
            asked |= {"timeout_s": seconds_left, "memory": bytes_left}
            with self._using:
                return self._run(asked, excluded, parts, seconds_left or self._timeout_s)

        return native.Forker(self._owners, run)

    def close(self) -> None:
        """Hang up."""
        with self._using:
            self._drop(list(self._connections))

    def _run(
        self, asked: dict[str, Any], excluded: NDArray[np.uint32], parts: Sequence[ForkPart], seconds: float
    ) -> list[ForkPart]:
        deadline = time.monotonic() + seconds + _GRACE_S
        waiting = [node for node, part in enumerate(parts) if part is not None]
        found: list[ForkPart] = [None] * len(parts)
        try:
            for node, part in enumerate(parts):
                if part is not None:
                    columns: Columns = {"excluded": excluded, "rows": rows_to_arrow(*part)}
                    self._connection(node, deadline).send(asked, columns)
                    self.rows += len(part[1][0])
            for node in list(waiting):
                found[node] = self._receive(node, deadline)
                waiting.remove(node)
        finally:
            self._drop(waiting)  # whatever they still answer, nobody waits for it
        self.forks += 1
        return found

    def _connection(self, node: int, deadline: float) -> Connection:
        if node not in self._connections:
            self._connections[node] = self._connected(node, deadline)
        connection = self._connections[node]
        connection.expire_at(deadline)
        return connection

    def _connected(self, node: int, deadline: float) -> Connection:
        """A new connection. A node that was killed is waited for, as long as the evaluation has time."""
        while True:
            try:
                return Connection.to(self._addresses[node], self._secret, self._timeout_s)
            except ControlError as error:
                if error.fault == "refused" or time.monotonic() + _PAUSE_S > deadline - _GRACE_S:
                    raise
                time.sleep(_PAUSE_S)

    def _receive(self, node: int, deadline: float) -> ForkPart:
        connection = self._connections[node]
        connection.expire_at(deadline)
        answer, columns = connection.receive()
        match answer.get("kind"):
            case None:
                return rows_from_arrow(columns["rows"])
            case "LimitError":
                raise LimitError(answer["error"])
            case "StorageError":  # the node is behind, or was started anew: the evaluation begins again
                raise ControlError(answer["error"], "retired")
            case _:
                raise StorageError(f"node {self._addresses[node]} refuses a fork: {answer['error']}")

    def _drop(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            if (connection := self._connections.pop(node, None)) is not None:
                connection.close()
