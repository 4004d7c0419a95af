"""The active coordinator's transactions. A transaction contains records and the coordinator's state. The only exception
is the transaction of `commit_filters`, which contains only predicate filters.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from penstock.errors import DataError, LimitError
from penstock.log import LogError, Record, RecordTooLargeError, TransientError
from penstock.replication.status_topic import stopped_record
from penstock.services.coordinator.registrar import Change
from penstock.wire import CoordinatorState, NamedGraph, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.log import Log, Topic, TransactionalWriter
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.coordinator.control_state import ControlState
    from penstock.wire import StreamPredicates

_STATE = b"state"


class StateWriter:
    """Commits changes of `state`. Each commit is one transaction. FencedError if another instance is active.

    `written`: number of transactions. `ahead`: whether memory contains a refused change, which the log does not
    contain. While `ahead` is true, commits write the last committed state instead of the state in memory. The refused
    change thus never reaches the log. The owner must restore the state in memory from the log.
    """

    def __init__(self, log: Log, topics: ClusterTopics, writer: TransactionalWriter, state: ControlState) -> None:
        self._log = log
        self._topics = topics
        self._writer = writer
        self._state = state
        self._attached: tuple[Sequence[Record], Mapping[str, int]] = (), {}
        self._gathered: Change | None = None
        self.written = 0
        self.ahead = False

    @contextmanager
    def attached(self, records: Sequence[Record], consumed: Mapping[str, int]) -> Iterator[None]:
        """Add `records`, and the next offsets of request topics (`consumed`), to the transaction that the body of the
        `with` statement commits. If the body commits no transaction, a separate transaction commits the records and
        offsets.
        """
        written, self._attached = self.written, (records, consumed)
        try:
            yield
            if self.written == written:
                self.confirm()
        finally:
            self._attached = (), {}

    @property
    def gathers(self) -> bool:
        """Whether changes are gathered."""
        return self._gathered is not None

    @contextmanager
    def gathered(self) -> Iterator[Change]:
        """Gather the changes that the body of the `with` statement commits. The gathered changes become one change,
        which the caller commits afterwards.
        """
        self._gathered = change = Change()
        try:
            yield change
        finally:
            self._gathered = None

    def confirm(self) -> None:
        """Commit an empty transaction. If the commit succeeds, this instance is still active, and its last decision is
        valid.
        """
        self.commit([])

    def commit(self, records: Sequence[Record]) -> None:
        """Commit records, attached records and the state. LimitError if a record is too large; this sets `ahead`."""
        more, consumed = self._attached
        state, graphs = self._next_state(consumed), [] if self.ahead else list(self._state.registrar.new_graphs)
        control = self._topics.names.control
        named = [Record(control, encode(NamedGraph(iri)), _graph_key(iri)) for iri in graphs]
        try:
            self._writer.commit([*records, *named, *more, Record(control, encode(state), _STATE)])
        except RecordTooLargeError as error:
            self.ahead = True
            raise LimitError(str(error)) from error
        self.written += 1
        self._state.committed = state
        del self._state.registrar.new_graphs[: len(graphs)]

    def commit_change(self, change: Change, filters: Sequence[StreamPredicates] = ()) -> None:
        """Commit a change. The transaction writes the change's commands to all partitions of the shards topic. It also
        writes the change's updates to the control topic, and the predicate filters of the changed streams.

        An empty change commits nothing. While changes are gathered, the change is only added to the gathered changes.
        """
        if not change.commands:
            return
        if self._gathered is not None:
            assert not filters, "changes with filters are not gathered"
            self._gathered.add(change)
            return
        names = self._topics.names
        values = [encode(command) for command in change.commands]
        records = [Record(names.shards, value, None, shard) for value in values for shard in range(self._topics.shards)]
        compacted = [
            Record(names.control, None if record is None else encode(record), key.encode())
            for key, record in change.compacted.items()
        ]
        stopped = [stopped_record(names, record.name, record.number) for record in change.stopped]
        # Filters precede the declaration: a reader that knows the stream also knows its filter.
        self.commit([*records, *self._filter_records(filters), *compacted, *stopped])
        self._state.filters |= {record.stream: record for record in filters}

    def commit_filters(self, filters: Sequence[StreamPredicates]) -> None:
        """Commit predicate filters in a separate transaction, without the state and attached records."""
        self._writer.commit(self._filter_records(filters))
        self._state.filters |= {record.stream: record for record in filters}
        self.written += 1

    def create(self, topics: Sequence[Topic]) -> None:
        """Create the topics that the next change needs. DataError if the brokers refuse; this sets `ahead`."""
        try:
            self._log.create(topics)
        except TransientError:
            raise
        except LogError as error:
            self.ahead = True
            raise DataError(f"cannot create topic {topics[0].name}: {error}") from error

    def _filter_records(self, filters: Sequence[StreamPredicates]) -> list[Record]:
        control = self._topics.names.control
        return [Record(control, encode(record), f"filter:{record.stream}".encode()) for record in filters]

    def _next_state(self, consumed: Mapping[str, int]) -> CoordinatorState:
        requests = {**self._state.committed.requests, **consumed}
        if self.ahead:
            return replace(self._state.committed, requests=requests)
        return self._state.current(requests)

    def close(self) -> None:
        """Close the transactional writer."""
        self._writer.close()


def _graph_key(iri: str) -> bytes:
    """Return the control topic's key of a named graph. The key has a fixed size, because the IRI can be large."""
    return b"graph:" + blake2b(iri.encode(), digest_size=32).digest()
