"""The contract. tests/contract/test_log.py holds every back end to it.

A topic has numbered partitions; a partition is a sequence of records with rising offsets. Offsets may have gaps
(compaction removes records, transactions leave markers), so "the next one" is asked of the reader (`positions`), never
computed. Readers see committed records only.

Objects of one log may be used from several threads; one reader or writer belongs to one thread at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from penstock.log.sizes import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

START = -2
"""As an offset to read from: the oldest record that is still there."""
END = -1
"""As an offset to read from: behind the last committed record."""

Headers = tuple[tuple[str, bytes], ...]


class Topic(NamedTuple):
    """A topic to create. `compact` keeps at least the last record of each key; `retention_ms` None = for ever.
    `max_bytes`: its largest record, with its envelope (`max.message.bytes`).
    """

    name: str
    partitions: int = 1
    cleanup: Literal["delete", "compact", "compact,delete"] = "delete"
    retention_ms: int | None = None
    max_bytes: int = MAX_RECORD_BYTES


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int = 0


class Record(NamedTuple):
    """A record to append. A `value` of None deletes the key in compacted topics; `timestamp_ms` None = now."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: Headers = ()
    timestamp_ms: int | None = None


class Message(NamedTuple):
    """A record as it is read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Span(NamedTuple):
    """What a partition holds: records from `start` up to, not including, `end` (committed ones, gaps possible)."""

    start: int
    end: int


class Writer(Protocol):
    """Appends single records in order, each once, however often the connection fails; no transaction.

    What one writer appends to a partition stays in that order. A crash loses a suffix of what was not flushed.
    """

    def submit(self, record: Record) -> None:
        """Hand a record over; it is durable only after `flush`. `Backpressure` when too much is in flight: flush.

        RecordTooLargeError: no topic takes the record, and it was not handed over.
        """
        ...

    def flush(self) -> None:
        """Wait until everything submitted is durable.

        TransientError when that took longer than the back end's bound: all is still in flight, flush again.
        LogError when a record was refused for good: a suffix of each partition's records is lost.
        """
        ...

    def append(self, records: Sequence[Record]) -> None:
        """Submit and flush all, waiting where there is back-pressure. RecordTooLargeError: nothing was submitted.

        TransientError: what was submitted is still in flight. The same call again waits for it and writes none of its
        records twice: the idempotent producer keeps their sequence numbers.
        """
        ...

    def close(self) -> None:
        """Let go; what was not flushed may be lost."""
        ...


class TransactionalWriter(Protocol):
    """Appends several records to any partitions, and consumed offsets, all or none.

    At most one writer with a given transactional id lives: opening another fences this one (all its calls raise
    FencedError from then on) and settles what it left half done, before the opening call returns.
    """

    def commit(
        self, records: Sequence[Record], consumed: Mapping[Partition, int] | None = None, group: str = ""
    ) -> list[int]:
        """Write all in one transaction; return the records' offsets, in their order. Readers see it at once or soon.

        consumed: the next offset to read of each partition, stored as the group's progress (`Log.committed`).
        TransientError: the transaction was aborted, nothing of it will ever be seen. RecordRefusedError: likewise, and
        the same records would be refused again (it names the topic). FencedError: this writer is over.
        LogError: the outcome is unknown; end, open the id again and look at what is there.
        """
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Reader(Protocol):
    """Reads partitions that it is told, from offsets that it is told."""

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Return what has come, in order within each partition; empty after `timeout_s` without anything."""
        ...

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Read these partitions too, or from there on (or START, END). UnknownTopicError where one is none."""
        ...

    def unassign(self, partitions: Iterable[Partition]) -> None:
        """Read these no more. Nothing of them comes from the next poll on."""
        ...

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Return nothing of these until `resume`: back-pressure on single inputs."""
        ...

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Go on where `pause` stopped."""
        ...

    def positions(self) -> dict[Partition, int]:
        """Return from where each partition is read next."""
        ...

    def caught_up(self) -> bool:
        """Whether each partition has been polled up to its end (as that was at some moment after the last assign)."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class GroupReader(Protocol):
    """Reads topics together with the other members of a group; each partition is read by one member at a time."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics from now on, instead of those named before."""
        ...

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Return what has come of the partitions that are assigned now. Joining and rebalancing happen in here."""
        ...

    def assigned(self) -> frozenset[Partition]:
        """Return the partitions that this member reads as of the last poll."""
        ...

    def positions(self) -> dict[Partition, int]:
        """Return from where each assigned partition is read next, as far as that is known by now."""
        ...

    @property
    def generation(self) -> int:
        """A number that grows with each change of `assigned`: whoever holds work of an older one drops it."""
        ...

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Store the group's progress, the next offset of each. RebalancedError when one is another member's now."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


class Log(Protocol):
    """A set of topics."""

    def create(self, topics: Iterable[Topic]) -> None:
        """Create those that do not exist yet; an existing topic is left as it is."""
        ...

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic so many partitions, where it has fewer. UnknownTopicError."""
        ...

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        ...

    def limits(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the largest record of each topic that exists, as its configuration is now (`sizes.wire_bytes`)."""
        ...

    def spans(self, partitions: Iterable[Partition]) -> dict[Partition, Span]:
        """Return what each partition holds of committed records. UnknownTopicError where one is none."""
        ...

    def writer(self) -> Writer:
        """Open a writer."""
        ...

    def transactional(self, transactional_id: str) -> TransactionalWriter:
        """Open the writer of that id, fencing and settling the one before."""
        ...

    def reader(self, positions: Mapping[Partition, int] | None = None) -> Reader:
        """Open a reader on these partitions."""
        ...

    def join(self, group: str, topics: Sequence[str]) -> GroupReader:
        """Become a member of a group. A partition without progress is read from its start."""
        ...

    def committed(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the group's progress, where there is any."""
        ...

    def close(self) -> None:
        """Close all that was opened from this log."""
        ...
