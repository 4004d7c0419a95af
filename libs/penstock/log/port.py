"""The contract of the log. tests/contract/test_log.py runs against every back end.

A topic has numbered partitions; a partition is a sequence of records with increasing offsets. Offsets can have gaps,
because compaction removes records and transactions leave markers. Callers therefore never compute the next offset, but
get the next offset from the reader (`positions`). Readers see only committed records.

Several threads can use objects of one log. Only one thread at a time can use a reader or writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

START = -2
"""Stands for the offset of the oldest available record."""
END = -1
"""Stands for the offset after the last committed record."""

Headers = tuple[tuple[str, bytes], ...]

MAX_RECORD_BYTES: Final = 64 << 20
"""Maximum record size, including key, headers and envelope: `max.message.bytes` of the cluster's topics."""


class Topic(NamedTuple):
    """A topic to create. A `cleanup` with "compact" keeps only the last record of each key. `retention_ms`: None =
    unlimited.

    `max_bytes`: maximum record size, including the envelope (`max.message.bytes`). `compression`: the compression of
    batches in the topic (`compression.type`). With "uncompressed", the broker decompresses a batch before it checks the
    size of the batch.
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
    """A record to append. In compacted topics, a `value` of None deletes the key. `timestamp_ms`: None = now."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: Headers = ()
    timestamp_ms: int | None = None


class Message(NamedTuple):
    """A record from the log. `error`: the reason why the record could not be read, otherwise an empty text. A message
    with an error has no key, value or headers. Such a message can stand for several records. Its offset is then the
    last offset of these records.
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
    """The range of the offsets of a partition's committed records, from `start` (inclusive) to `end` (exclusive). The
    range can have gaps.
    """

    start: int
    end: int


class Writer(Protocol):
    """Appends single records in order, without transactions. Each record is written exactly once, even after connection
    failures.

    The records of a writer in one partition keep their order. A crash can lose records that are not flushed. If a
    record is lost, all later records of its partition are lost, too.
    """

    def submit(self, record: Record) -> None:
        """Queue a record. The record is durable only after `flush`. Backpressure if too many records are in flight. The
        caller must then call `flush`.

        RecordRefusedError if the record is too large, or if its topic does not exist or does not accept the record. The
        record was then not queued.
        """
        ...

    def flush(self) -> None:
        """Wait until all submitted records are durable.

        TransientError after the back end's timeout. All records are then still in flight, and the caller can flush
        again. LogError if a record was refused permanently. The last submitted records of each partition are then
        possibly lost.
        """
        ...

    def append(self, records: Sequence[Record]) -> None:
        """Submit and flush all records. Waits while too many records are in flight. After a RecordTooLargeError,
        nothing was submitted.

        After a TransientError, submitted records are still in flight. A repeated call waits for these records. The
        repeated call writes no record twice, because the idempotent producer keeps the sequence numbers of the records.
        """
        ...

    def close(self) -> None:
        """Close the writer. Records that are not flushed can be lost."""
        ...


class TransactionalWriter(Protocol):
    """Appends records to any partitions and stores consumed offsets, atomically.

    At most one writer per transactional id is active. If another writer with the same id is opened, the new writer
    fences this writer. All later calls of this writer raise FencedError. Before the opening call returns, the
    unfinished transaction of this writer is committed or aborted.
    """

    def commit(
        self, records: Sequence[Record], consumed: Mapping[Partition, int] | None = None, group: str = ""
    ) -> list[int]:
        """Write all records in one transaction and return their offsets in order. Readers see the records soon after
        the call.

        `consumed`: for each partition, the next offset to read. These offsets are stored as the progress of the
        consumer group `group` (`Log.committed`).

        Errors:

        - TransientError: the transaction is aborted and has no effect.
        - RecordRefusedError: the transaction is aborted and has no effect. The same records would be refused again. The
        error names the topic.
        - FencedError: a newer writer with the same transactional id exists. The caller must not use this writer any
        more.
        - LogError: it is unknown whether the transaction was committed. The caller must not use this writer any more.
        The caller must open a new writer with the same transactional id, and find out from the topics which records
        were written.
        """
        ...

    def close(self) -> None:
        """Close the writer."""
        ...


class Reader(Protocol):
    """Reads the assigned partitions from the given offsets."""

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Return received records, in order within each partition. The list is empty if no record arrives within
        `timeout_s`.
        """
        ...

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Read each partition from its position, which is an offset, START or END. An already assigned partition moves
        to this position. UnknownTopicError if a topic or partition does not exist.
        """
        ...

    def unassign(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions. Later polls return no records of these partitions."""
        ...

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Pause partitions. Polls return no records of these partitions until `resume`. This applies back-pressure to
        single inputs.
        """
        ...

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Resume paused partitions at their positions."""
        ...

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition."""
        ...

    def caught_up(self) -> bool:
        """Return whether each partition has been polled to its end. The reader determines the end of each partition
        after the last `assign`, possibly at different moments.
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
        """Return received records of the assigned partitions. During this call, the member joins the group and takes
        part in rebalances.
        """
        ...

    def assigned(self) -> frozenset[Partition]:
        """Return this member's partitions as of the last poll."""
        ...

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each assigned partition, if known."""
        ...

    @property
    def generation(self) -> int:
        """A number that increases with each change of `assigned`. The caller must drop work of an older generation."""
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
        """Increase a topic's number of partitions to `partitions`, if the topic has fewer partitions. UnknownTopicError
        if the topic does not exist.
        """
        ...

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        ...

    def limits(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the currently configured maximum record size of each existing topic in bytes. `sizes.wire_bytes`
        computes the size of a record for this comparison.
        """
        ...

    def spans(self, partitions: Iterable[Partition]) -> dict[Partition, Span]:
        """Return the offsets of each partition's committed records. UnknownTopicError if a partition does not exist."""
        ...

    def writer(self) -> Writer:
        """Open a writer."""
        ...

    def transactional(self, transactional_id: str, *, offsets: bool = True) -> TransactionalWriter:
        """Open a writer. Fences the previous writer with the same transactional id, and settles that writer's
        transaction. If `offsets` is False, `commit` need not return offsets, and takes less time.
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
