"""One order for the whole cluster: that of the shards topic's partition 0 (ADR 0026).

Every record goes to every partition in one transaction, each partition having its own shard's part. Two writers
(dispatcher, coordinator) may interleave differently in different partitions; the spine takes what partition 0 has next
once its parts have come in all partitions. So every process that follows all partitions sees the same sequence, and the
n-th step of it is the cluster's snapshot n.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from penstock.errors import LimitError
from penstock.wire import (
    QueryRegistration,
    QueryStop,
    ShardBatch,
    ShardInsertion,
    ShardLoad,
    StreamDeclaration,
    StreamDrop,
    StreamEnd,
)
from penstock.wire.parts import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SequencedRecord: TypeAlias = (
    ShardBatch | ShardInsertion | ShardLoad | StreamDeclaration | StreamDrop | StreamEnd | QueryRegistration | QueryStop
)
Step: TypeAlias = tuple[SequencedRecord, ...]
"""The parts of one record, by partition; commands have equal parts. Batches of several records are joined."""

_Key: TypeAlias = tuple[str | int, ...]
MAX_WAITING = 100_000
"""Parts that one partition may be ahead of the others before it is an error: then one of them has lost records."""


def key_of(record: SequencedRecord) -> _Key:
    """Return what the parts of one record have in common."""
    match record:
        case ShardBatch():
            return "batch", record.stream, record.declared, record.last
        case ShardInsertion():
            return "insertion", record.number, record.part
        case ShardLoad():
            return "load", record.number
        case StreamEnd():
            return "end", record.stream, record.declared
        case _:
            return "command", record.number


@dataclass(slots=True)
class _Arrived:
    """What one partition has of a record so far. `offset`: of the first of its parts."""

    offset: int
    parts: int
    records: dict[int, SequencedRecord]

    @property
    def whole(self) -> bool:
        return len(self.records) == self.parts

    def joined(self) -> SequencedRecord:
        first = next(iter(self.records.values()))
        if self.parts == 1:
            return first
        return joined({part: record for part, record in self.records.items() if isinstance(record, ShardBatch)})


class Sequencer:
    """Puts the parts together. `stale` says of a record that it was applied before, or is nobody's any more: such a one
    is passed over. What is stale stays so.
    """

    def __init__(self, partitions: int, stale: Callable[[SequencedRecord], bool]) -> None:
        self._stale = stale
        self._order: deque[_Key] = deque()
        self._waiting: list[dict[_Key, _Arrived]] = [{} for _ in range(partitions)]
        self._next = [0] * partitions

    def resume(self, positions: Sequence[int]) -> None:
        """Go on from there: everything before was given out."""
        self._next = list(positions)

    def take(self, partition: int, offset: int, record: SequencedRecord) -> None:
        """Take in what was read from a partition. LimitError where the partitions have come apart."""
        waiting = self._waiting[partition]
        if len(waiting) >= MAX_WAITING:
            raise LimitError(f"partition {partition} is {MAX_WAITING} records ahead of the others")
        self._next[partition] = offset + 1
        key = key_of(record)
        if self._stale(record):
            return
        part, parts = (record.part, record.parts) if isinstance(record, ShardBatch) else (0, 1)
        arrived = waiting.get(key)
        if arrived is not None:
            arrived.records.setdefault(part, record)
            return
        waiting[key] = _Arrived(offset, parts, {part: record})
        if partition == 0:
            self._order.append(key)

    def next(self) -> Step | None:
        """Return the next step, or None where it has not come in all partitions."""
        while self._order:
            key = self._order[0]
            if self._stale(
                next(iter(self._waiting[0][key].records.values()))
            ):  # where they come later, its parts are not taken in
                self._order.popleft()
                for waiting in self._waiting:
                    waiting.pop(key, None)
            elif all(key in waiting and waiting[key].whole for waiting in self._waiting):
                self._order.popleft()
                return tuple(waiting.pop(key).joined() for waiting in self._waiting)
            else:
                return None
        return None

    def positions(self) -> Sequence[int]:
        """Return, for each partition, the offset before which everything was given out: where a restart reads on."""
        ahead = zip(self._waiting, self._next, strict=True)
        return [min((each.offset for each in waiting.values()), default=following) for waiting, following in ahead]
