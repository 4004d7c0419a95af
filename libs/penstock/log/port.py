"""The contract of the log. tests/contract/test_log.py runs against every back end.

A topic has numbered partitions; a partition is a sequence of records with increasing offsets. Offsets may have gaps,
because compaction removes records and transactions leave markers. Callers therefore never compute the next offset, but
read it from the reader (`positions`). Readers see only committed records.

Objects of one log may be used from several threads; a reader or writer may be used by one thread at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

START = -2
"""As an offset: the oldest available record."""
END = -1
"""As an offset: after the last committed record."""

Headers = tuple[tuple[str, bytes], ...]

MAX_RECORD_BYTES: Final = 64 << 20
"""Maximum record size, including key, headers and envelope: `max.message.bytes` of the cluster's topics."""


class Topic(NamedTuple):
    """A topic to create. A `cleanup` with "compact" keeps only the last record of each key. `retention_ms`: None =
    unlimited.

    `max_bytes`: maximum record size, including its envelope (`max.message.bytes`). `compression`: of the batches in the
    topic (`compression.type`). With "uncompressed", the broker decompresses batches before it checks their size.
    """

    name: str
    partitions: int = 1
    cleanup: Literal["delete", "compact", "compact,delete"] = "delete"
    retention_ms: int | None = None
    max_bytes: int = MAX_RECORD_BYTES
    compression: Literal["producer", "uncompressed"] = "producer"


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int = 0


class Record(NamedTuple):
    """A record to append. A `value` of None deletes the key in compacted topics. `timestamp_ms`: None = now."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: Headers = ()
    timestamp_ms: int | None = None


class Message(NamedTuple):
    """A record as read from the log. `error`: why it could not be read, or an empty text. A message with an error has
    no key, value or headers. It may stand for several records. Its offset is then the last offset of these records.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    error: str = ""


class Span(NamedTuple):
    """The offsets of a partition's committed records: from `start` (inclusive) to `end` (exclusive), with possible
    gaps.
    """

    start: int
    end: int


class Writer(Protocol):
    """Appends single records in order, exactly once despite connection failures, without transactions.

    A writer's records of one partition keep their order. A crash may lose records that are not flushed. If a record is
    lost, so are all later ones of its partition.
    """

    def submit(self, record: Record) -> None:
        """Queue a record. It is durable only after `flush`. Backpressure if too many records are in flight: call
        `flush`.

        RecordRefusedError: the record was not queued. It is too large, or its topic does not exist or does not accept
        it.
        """
        ...

    def flush(self) -> None:
        """Wait until all submitted records are durable.

        TransientError after the back end's timeout: all records are still in flight; flush again.
        LogError if a record was refused permanently. The last submitted records of each partition may then be lost.
        """
        ...

    def append(self, records: Sequence[Record]) -> None:
        """Submit and flush all records. Waits while too many are in flight. RecordTooLargeError: nothing was submitted.

        TransientError: submitted records are still in flight. Repeating the call waits for them and writes no record
        twice, because the idempotent producer keeps their sequence numbers.
        """
        ...

    def close(self) -> None:
        """Close the writer. Records that are not flushed may be lost."""
        ...


class TransactionalWriter(Protocol):
    """Appends records to any partitions and stores consumed offsets, atomically.

    At most one writer per transactional id is active. Opening another writer with the id fences this one, so that all
    calls of this one raise FencedError. Before the opening call returns, the unfinished transaction of this writer is
    committed or aborted.
    """

    def commit(
        self, records: Sequence[Record], consumed: Mapping[Partition, int] | None = None, group: str = ""
    ) -> list[int]:
        """Write all records in one transaction and return their offsets in order. Readers see the records soon after
        the call.

        consumed: the next offset to read of each partition, stored as the group's progress (`Log.committed`).
        TransientError: the transaction was aborted and has no effect. RecordRefusedError: likewise, and the same
        records would be refused again; the error names the topic. FencedError: a newer writer with this id exists, and
        this one must stop. LogError: the outcome is unknown. Stop, open a new writer with the id, and read from the
        topics what was written.
        """
        ...

    def close(self) -> None:
        """Close the writer."""
        ...


class Reader(Protocol):
    """Reads the assigned partitions from the given offsets."""

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Return received records, in order within each partition; empty if none arrive within `timeout_s`."""
        ...

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Read each partition from its position: an offset, START or END. A partition that is already assigned moves
        there. UnknownTopicError if a topic or partition does not exist.
        """
        ...

    def unassign(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions. Later polls return none of their records."""
        ...

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Pause partitions: polls return none of their records until `resume`. This applies back-pressure to single
        inputs.
        """
        ...

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Resume paused partitions at their positions."""
        ...

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition."""
        ...

    def caught_up(self) -> bool:
        """Return whether each partition has been polled up to its end. The reader may have determined the ends of the
        partitions at different moments after the last `assign`.
        """
        ...

    def close(self) -> None:
        """Close the reader."""
        ...


class GroupReader(Protocol):
    """Reads topics as a member of a consumer group. One member at a time reads each partition."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Replace the subscribed topics."""
        ...

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Return received records of the assigned partitions. Joins and rebalances happen in this call."""
        ...

    def assigned(self) -> frozenset[Partition]:
        """Return this member's partitions as of the last poll."""
        ...

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each assigned partition, if known."""
        ...

    @property
    def generation(self) -> int:
        """A number that increases with each change of `assigned`. Work of an older generation must be dropped."""
        ...

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Store the group's progress: the next offset of each partition. RebalancedError if another member owns a
        partition.
        """
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


class Log(Protocol):
    """A set of topics. Creates topics, and opens their readers and writers."""

    def create(self, topics: Iterable[Topic]) -> None:
        """Create the topics that do not exist. Existing topics are not changed."""
        ...

    def grow(self, topic: str, partitions: int) -> None:
        """Increase a topic's number of partitions to `partitions` if it has fewer. UnknownTopicError if the topic does
        not exist.
        """
        ...

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        ...

    def limits(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the currently configured maximum record size of each existing topic, in bytes as `sizes.wire_bytes`
        counts them.
        """
        ...

    def spans(self, partitions: Iterable[Partition]) -> dict[Partition, Span]:
        """Return the offsets of each partition's committed records. UnknownTopicError if a partition does not exist."""
        ...

    def writer(self) -> Writer:
        """Open a writer."""
        ...

    def transactional(self, transactional_id: str, *, offsets: bool = True) -> TransactionalWriter:
        """Open a writer. Fences the previous writer with the same transactional id, and settles its transaction.
        `offsets` False: `commit` need not return offsets, which takes less time.
        """
        ...

    def reader(self, positions: Mapping[Partition, int] | None = None) -> Reader:
        """Open a reader of these partitions."""
        ...

    def join(self, group: str, topics: Sequence[str]) -> GroupReader:
        """Join a consumer group. A partition without progress is read from its start."""
        ...

    def committed(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the group's progress. Partitions without progress are missing."""
        ...

    def close(self) -> None:
        """Close all open readers and writers of this log."""
        ...
