"""Writers of the memory log."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from penstock.log.appending import Appending
from penstock.log.errors import Backpressure
from penstock.log.faults import Point
from penstock.log.memory.partitions import record_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.log.memory.memory_broker import MemoryBroker
    from penstock.log.port import Partition, Record

MAX_IN_FLIGHT = 100_000
"""Maximum number of records that a writer can submit without a flush."""


class MemoryWriter:
    """Appends single records. Closing the writer loses submitted records that are not flushed."""

    def __init__(self, log: MemoryBroker) -> None:
        self._log = log
        self._pending: deque[Record] = deque()
        self._bytes = 0
        self._appending = Appending()

    def submit(self, record: Record) -> None:
        """Queue a record."""
        if len(self._pending) >= MAX_IN_FLIGHT:
            raise Backpressure(f"{MAX_IN_FLIGHT} records are in flight")
        self._log.check([record], self._bytes)
        self._pending.append(record)
        self._bytes += record_bytes(record)

    def flush(self) -> None:
        """Make the submitted records durable, one by one."""
        while self._pending:
            self._log.faults.at(Point.APPEND, "")
            self._log.append(self._pending[0])
            self._bytes -= record_bytes(self._pending.popleft())

    def append(self, records: Sequence[Record]) -> None:
        """Submit and flush all records, or continue a failed call."""
        self._log.check(records)
        self._appending.run(records, self._submit_in_time, self.flush)

    def _submit_in_time(self, record: Record) -> None:
        if len(self._pending) >= MAX_IN_FLIGHT:
            self.flush()
        self.submit(record)

    def close(self) -> None:
        """Drop records that are not flushed."""
        self._pending.clear()
        self._bytes = 0


class MemoryTransactionalWriter:
    """Appends records atomically until a newer writer with the same id is opened."""

    def __init__(self, log: MemoryBroker, transactional_id: str, epoch: int) -> None:
        self._log = log
        self._id = transactional_id
        self._epoch = epoch

    def commit(
        self, records: Sequence[Record], consumed: Mapping[Partition, int] | None = None, group: str = ""
    ) -> list[int]:
        """Write all records or none."""
        assert not consumed or group, "progress is stored for a group"
        return self._log.commit_transaction(self._id, self._epoch, records, consumed or {}, group)

    def close(self) -> None:
        """Do nothing."""
