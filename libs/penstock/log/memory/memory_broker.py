"""Topics, consumer groups and transactions in memory.

The memory log keeps Kafka's guarantees and reproduces its pitfalls: offset gaps after transactions, compaction,
fencing, group rebalances and delayed visibility. The given clock supplies the time, and `Faults` injects faults.
Without other threads, the same calls give the same results.
"""

from __future__ import annotations

from itertools import count
from threading import Condition
from typing import TYPE_CHECKING

from penstock.log.clock import SystemClock
from penstock.log.errors import (
    Backpressure,
    FencedError,
    RecordRefusedError,
    UnknownTopicError,
)
from penstock.log.faults import Faults, NoFaults, Point
from penstock.log.memory.partitions import Group, PartitionLog, record_bytes
from penstock.log.port import MAX_RECORD_BYTES, Partition, Record, Span, Topic
from penstock.log.sizes import check_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.log.clock import Clock

MAX_BYTES = 1 << 30
"""Maximum size of a memory log in bytes. Appends beyond this size raise `Backpressure`. `trim` and `compact` free
space.
"""
DELETE_RETENTION_MS = 86_400_000


class MemoryBroker:
    """Topics of the memory log, for its readers and writers. Any thread can use this object."""

    def __init__(
        self,
        clock: Clock | None = None,
        faults: Faults | None = None,
        max_bytes: int = MAX_BYTES,
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.faults: Faults = faults or NoFaults()
        self.changed = Condition()
        self._max_bytes, self._max_record_bytes = max_bytes, max_record_bytes
        self._bytes = 0
        self._topics: dict[str, tuple[Topic, list[PartitionLog]]] = {}
        self._groups: dict[str, Group] = {}
        self._epochs: dict[str, int] = {}
        self._members = count(1)
        self._denied: set[str] = set()

    # ---- topics
    def create(self, topics: Iterable[Topic]) -> None:
        """Create the topics that do not exist."""
        with self.changed:
            for topic in topics:
                if topic.name not in self._topics:
                    partitions = [PartitionLog(Partition(topic.name, i)) for i in range(topic.partitions)]
                    self._topics[topic.name] = (topic, partitions)
            self.reshare()
            self.changed.notify_all()

    def grow(self, topic: str, partitions: int) -> None:
        """Increase a topic's number of partitions to `partitions`, if the topic has fewer partitions. UnknownTopicError
        if the topic does not exist.
        """
        with self.changed:
            self.partition(Partition(topic, 0))
            there = self._topics[topic][1]
            there += [PartitionLog(Partition(topic, i)) for i in range(len(there), partitions)]
            self.reshare()
            self.changed.notify_all()

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        with self.changed:
            return {name: len(partitions) for name, (_, partitions) in self._topics.items()}

    def partition(self, name: Partition) -> PartitionLog:
        """Return a partition. UnknownTopicError if the partition does not exist."""
        _, partitions = self._topics.get(name.topic, (None, []))
        if not 0 <= name.number < len(partitions):
            raise UnknownTopicError(f"unknown topic or partition {name.topic}[{name.number}]", name.topic)
        return partitions[name.number]

    def spans(self, partitions: Iterable[Partition]) -> dict[Partition, Span]:
        """Return start and end offsets of each partition."""
        self.faults.at(Point.ASK, "")
        with self.changed:
            return {name: self.partition(name).span for name in partitions}

    def limits(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the maximum record size in bytes of each existing topic."""
        with self.changed:
            return {name: self._topics[name][0].max_bytes for name in topics if name in self._topics}

    # ---- actions of users and operators on topics
    def deny(self, topic: str) -> None:
        """Refuse all records to a topic, as an access list does."""
        with self.changed:
            self._denied.add(topic)

    def allow(self, topic: str) -> None:
        """Accept records to the topic again."""
        with self.changed:
            self._denied.discard(topic)

    def delete(self, topic: str) -> None:
        """Delete a topic and its records."""
        with self.changed:
            for partition in self._topics.pop(topic)[1]:
                self._bytes -= partition.trim(partition.end)
            self.reshare()

    def configure(self, topic: str, max_bytes: int) -> None:
        """Set a topic's maximum record size."""
        with self.changed:
            shape, partitions = self._topics[topic]
            self._topics[topic] = shape._replace(max_bytes=max_bytes), partitions

    def delete_group(self, group: str) -> None:
        """Delete a group's progress, as brokers do after a period without members."""
        with self.changed:
            self.group(group).progress.clear()

    def trim(self, name: Partition, before: int) -> None:
        """Remove the records below an offset, as retention does."""
        with self.changed:
            self._bytes -= self.partition(name).trim(before)

    def compact(self, topic: str, delete_retention_ms: int = DELETE_RETENTION_MS) -> None:
        """Compact a topic now. As in Kafka, deletion markers stay for `delete_retention_ms`, so that active readers see
        the markers.
        """
        with self.changed:
            for partition in self._topics[topic][1]:
                self._bytes -= partition.compact(self.clock.now_ms() - delete_retention_ms)

    # ---- writing
    def check(self, records: Sequence[Record], in_flight: int = 0) -> None:
        """Raise UnknownTopicError, RecordTooLargeError or RecordRefusedError if a topic does not accept a record.
        Backpressure if the log has no space for the records now.
        """
        check_sizes(records, self._max_record_bytes)
        with self.changed:
            for record in records:
                self.partition(Partition(record.topic, record.partition))
                self._check_record(record)
            if self._bytes + in_flight + sum(map(record_bytes, records)) > self._max_bytes:
                raise Backpressure(f"the memory log holds {self._bytes} bytes (max_bytes is {self._max_bytes})")

    def _check_record(self, record: Record) -> None:
        topic = record.topic
        if topic in self._denied:
            raise RecordRefusedError(f"{topic}: topic authorization failed", topic)
        check_sizes([record], self._topics[topic][0].max_bytes)

    def append(self, record: Record) -> int:
        """Append a record that `check` has accepted. Returns its offset."""
        with self.changed:
            partition = self.partition(Partition(record.topic, record.partition))
            message = partition.append(record, self.clock.now_ms())
            delay_ms = self.faults.delay_ms(message)
            if delay_ms:
                partition.delay_visibility(self.clock.now_ms() + delay_ms)
            self._bytes += record_bytes(record)
            self.changed.notify_all()
            return message.offset

    def next_epoch(self, transactional_id: str) -> int:
        """Fence all writers with a transactional id, and return the epoch of the next writer with this id."""
        with self.changed:
            epoch = self._epochs[transactional_id] = self._epochs.get(transactional_id, 0) + 1
            return epoch

    def commit_transaction(
        self,
        transactional_id: str,
        epoch: int,
        records: Sequence[Record],
        progress: Mapping[Partition, int],
        group: str,
    ) -> list[int]:
        """Append all records and store the group's offsets atomically. Returns the records' offsets. FencedError if
        `epoch` is not the latest.
        """
        self.faults.at(Point.COMMIT, transactional_id)
        with self.changed:
            if self._epochs[transactional_id] != epoch:
                raise FencedError(f"a newer writer with the transactional id {transactional_id} exists")
            self.check(records)
            offsets = [self.append(record) for record in records]
            for name in dict.fromkeys(Partition(record.topic, record.partition) for record in records):
                self.partition(name).mark()
            if progress:
                self.group(group).progress.update(progress)
        self.faults.at(Point.COMMITTED, transactional_id)
        return offsets

    # ---- consumer groups
    def next_member(self) -> int:
        """Return the number of a new member. No two members have the same number, even in different groups."""
        return next(self._members)

    def group(self, name: str) -> Group:
        """Return a group. The first call for a group creates the group."""
        return self._groups.setdefault(name, Group())

    def reshare(self) -> None:
        """Assign the partitions of every group to its members again."""
        every = [partition.name for _, partitions in self._topics.values() for partition in partitions]
        for group in self._groups.values():
            group.share(every)

    def committed(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the group's progress. Partitions without progress are missing."""
        self.faults.at(Point.ASK, group)
        with self.changed:
            progress = self.group(group).progress
            return {name: progress[name] for name in partitions if name in progress}

    def close(self) -> None:
        """Do nothing. The records exist as long as the log is referenced."""
