"""State of a memory log: partitions and groups. The classes are not synchronised, because `MemoryBroker` holds the
lock.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from penstock.log.port import Message, Partition, Record, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ENVELOPE_BYTES = 64  # estimated overhead of a record
_AT_ONCE = -(1 << 63)


def record_bytes(record: Record | Message) -> int:
    """Return the size of a record in bytes, as counted for the log's limit."""
    headers = sum(len(name) + len(value) for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + _ENVELOPE_BYTES


class PartitionLog:
    """The records of one partition in offset order."""

    def __init__(self, name: Partition) -> None:
        self.name = name
        self.start = 0
        self.end = 0
        self._offsets: list[int] = []
        self._messages: list[Message] = []
        self._readable_at: list[int] = []

    @property
    def span(self) -> Span:
        """Return the start and end offsets."""
        return Span(self.start, self.end)

    def append(self, record: Record, now_ms: int) -> Message:
        """Append a record."""
        timestamp = now_ms if record.timestamp_ms is None else record.timestamp_ms
        message = Message(
            record.topic, record.partition, self.end, timestamp, record.key, record.value, tuple(record.headers)
        )
        self._offsets.append(self.end)
        self._messages.append(message)
        self._readable_at.append(self._readable_at[-1] if self._readable_at else _AT_ONCE)
        self.end += 1
        return message

    def delay_visibility(self, until_ms: int) -> None:
        """Make the last record, and therefore all later records, readable only from a given time on."""
        self._readable_at[-1] = max(self._readable_at[-1], until_ms)

    def mark(self) -> None:
        """Append a transaction marker, which is an offset without a record."""
        self.end += 1

    def read(self, offset: int, limit: int, now_ms: int) -> tuple[list[Message], int]:
        """Return at most `limit` readable records from `offset` on, and the next offset to read."""
        first = bisect_left(self._offsets, offset)
        last = first
        while last < len(self._offsets) and last - first < limit and self._readable_at[last] <= now_ms:
            last += 1
        messages = self._messages[first:last]
        if last == len(self._offsets):
            return messages, max(offset, self.end)
        return messages, self._offsets[last] if last > first or offset < self._offsets[first] else offset

    def trim(self, before: int) -> int:
        """Remove records below an offset, as retention does. Returns the number of freed bytes."""
        self.start = min(max(self.start, before), self.end)
        return self._keep(range(bisect_left(self._offsets, self.start), len(self._offsets)))

    def compact(self, deleted_before_ms: int) -> int:
        """Keep the last record of each key. Remove deletion markers older than `deleted_before_ms`. Returns the number
        of freed bytes.
        """
        last: dict[bytes, int] = {m.key: i for i, m in enumerate(self._messages) if m.key is not None}

        def stays(i: int, message: Message) -> bool:
            if message.key is None:
                return True
            return last[message.key] == i and (message.value is not None or message.timestamp_ms >= deleted_before_ms)

        return self._keep([i for i, message in enumerate(self._messages) if stays(i, message)])

    def _keep(self, rows: Sequence[int]) -> int:
        before = sum(map(record_bytes, self._messages))
        self._offsets = [self._offsets[i] for i in rows]
        self._messages = [self._messages[i] for i in rows]
        self._readable_at = [self._readable_at[i] for i in rows]
        return before - sum(map(record_bytes, self._messages))


class Group:
    """A consumer group: the members, the assignment of partitions to members, and the stored progress."""

    def __init__(self) -> None:
        self.progress: dict[Partition, int] = {}
        self.generation = 0
        self._members: dict[int, tuple[str, ...]] = {}
        self._owners: dict[Partition, int] = {}

    def enter(self, member: int, topics: Iterable[str]) -> None:
        """Add a member. The caller must call `share` afterwards."""
        self._members[member] = tuple(topics)

    def has(self, member: int) -> bool:
        """Return whether the group has a member."""
        return member in self._members

    def leave(self, member: int) -> None:
        """Remove a member. The caller must call `share` afterwards."""
        self._members.pop(member, None)

    def share(self, partitions: Iterable[Partition]) -> None:
        """Assign the partitions of each topic to the members that subscribe to the topic. A change starts a new
        generation.
        """
        owners: dict[Partition, int] = {}
        for i, partition in enumerate(sorted(partitions)):
            wanting = sorted(m for m, topics in self._members.items() if partition.topic in topics)
            if wanting:
                owners[partition] = wanting[i % len(wanting)]
        if owners != self._owners:
            self._owners = owners
            self.generation += 1

    def owned(self, member: int) -> frozenset[Partition]:
        """Return a member's partitions."""
        return frozenset(p for p, owner in self._owners.items() if owner == member)
