"""The sequencer: derives the total order of the cluster from the shards topic (ADR 26).

The order is the order of partition 0. A writer writes every record to all partitions in one transaction. Each partition
gets the part of the record for its shard. The records of different writers can interleave differently in different
partitions. The sequencer returns the next record of partition 0 as soon as the record's parts have arrived in all
partitions. All processes therefore see the same sequence of steps.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from penstock.errors import LimitError
from penstock.quarantine.kinds import SHARDS
from penstock.wire import (
    QueryRegistration,
    QueryStop,
    ShardBatch,
    ShardInsertion,
    ShardLoad,
    ShardRemoval,
    StreamDeclaration,
    StreamDrop,
    StreamEnd,
)
from penstock.wire.parts import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.log import Message
    from penstock.quarantine import InternalRecords

SequencedRecord: TypeAlias = (
    ShardBatch
    | ShardInsertion
    | ShardRemoval
    | ShardLoad
    | StreamDeclaration
    | StreamDrop
    | StreamEnd
    | QueryRegistration
    | QueryStop
)
Step: TypeAlias = tuple[SequencedRecord, ...]
"""The parts of one record, by partition. The parts of a command are equal. If a batch has several records in one
partition, the step contains these records joined into one record.
"""

_Key: TypeAlias = tuple[str | int, ...]
MAX_WAITING = 100_000
"""Maximum number of records by which a partition can be ahead of the others. A larger difference means that a partition
has lost records.
"""


def key_of(record: SequencedRecord) -> _Key:
    """Return the key that all parts of a record share."""
    match record:
        case ShardBatch():
            return "batch", record.stream, record.declared, record.last
        case ShardInsertion() | ShardRemoval():
            return "insertion", record.number, record.part
        case ShardLoad():
            return "load", record.number
        case StreamEnd():
            return "end", record.stream, record.declared
        case _:
            return "command", record.number


@dataclass(slots=True)
class _Arrived:
    """The records of one step that have arrived in a partition: records of a batch, or the single record of another
    kind of step. `offset`: the offset of the first record. `parts`: the total number of records that the partition has
    for the step.
    """

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
    """Joins the parts of records into steps. The sequencer skips records for which `stale` returns True, because such
    records have no effect (see `Replica`).

    Once `stale` returns True for a record, it must always return True for this record.
    """

    def __init__(self, partitions: int, stale: Callable[[SequencedRecord], bool]) -> None:
        self._stale = stale
        self._order: deque[_Key] = deque()
        self._waiting: list[dict[_Key, _Arrived]] = [{} for _ in range(partitions)]
        self._next = [0] * partitions

    def resume(self, positions: Sequence[int]) -> None:
        """Resume at the given offsets, after a restart."""
        self._next = list(positions)

    def read(self, messages: Iterable[Message], records: InternalRecords) -> None:
        """Decode messages of the shards topic with `records`, and add them. LimitError as for `take`;
        UnreadableRecordError for a record that cannot be decoded.
        """
        for message in messages:
            part = records.read(message, SHARDS)
            if part is not None:
                self.take(message.partition, message.offset, part)

    def take(self, partition: int, offset: int, record: SequencedRecord) -> None:
        """Add a record that was read from a partition. LimitError if the partition is too far ahead of the others."""
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
        """Return the next step, or None if its parts have not arrived in all partitions."""
        while self._order:
            key = self._order[0]
            if self._stale(
                next(iter(self._waiting[0][key].records.values()))
            ):  # parts that arrive later are skipped by `take`
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
        """Return the offset at which a restart must resume, for each partition."""
        ahead = zip(self._waiting, self._next, strict=True)
        return [min((each.offset for each in waiting.values()), default=following) for waiting, following in ahead]
