"""The coordinator's state. An instance that becomes active reads the state from the control topic, and then keeps the
state in memory. An error can leave the memory ahead of the log. The instance then reads the state again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log import START, Partition
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import CONTROL
from penstock.wire import (
    CoordinatorState,
    NamedGraph,
    Placement,
    QueryRegistration,
    StreamDeclaration,
    StreamPredicates,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.log import Log, TransactionalWriter
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.coordinator.registrar import Registrar
    from penstock.wire.codec import Wire


class Opening:
    """Opens the coordinator's writer and reads the control topic.

    Opening the writer fences the earlier instance. No other instance can therefore add records to the topic while this
    instance reads the topic.
    """

    def __init__(self, log: Log, topics: ClusterTopics) -> None:
        self.writer: TransactionalWriter = log.transactional(f"{topics.names.prefix}.coordinator")
        self._reader = log.reader({Partition(topics.names.control): START})
        self._records = InternalRecords(log, topics.names)
        self._latest: dict[bytes, Wire] = {}

    def read(self) -> bool:
        """Read the next records. Return True at the end of the topic."""
        for message in self._reader.poll():
            if message.key is None:
                continue
            if message.value is None:
                self._latest.pop(message.key, None)
            elif (record := self._records.read(message, CONTROL)) is not None:
                self._latest[message.key] = record
        return self._reader.caught_up()

    def records(self) -> list[Wire]:
        """Return the latest record of each key."""
        return list(self._latest.values())

    def close(self) -> None:
        """Close the reader and the writer."""
        self._reader.close()
        self.writer.close()


class ControlState:
    """The current state: declarations, queries, named graphs (all in `registrar`), placement, predicate filters,
    counters.

    `registrar` must be empty. `records`: the records of the control topic, from which the state is restored. The
    components that change the state assign the attributes of this object; `StateWriter` makes each change durable.
    """

    def __init__(self, registrar: Registrar, records: Sequence[Wire]) -> None:
        self.registrar = registrar
        self.placement = Placement(0, {}, {})
        self.insertions = 0
        self.filters: dict[str, StreamPredicates] = {}  # predicate filters, by stream
        self.committed = CoordinatorState(0, 0, 0)  # as of the last commit
        self._restore(records)

    def _restore(self, records: Sequence[Wire]) -> None:
        commands = [r for r in records if isinstance(r, StreamDeclaration | QueryRegistration)]
        for record in records:
            if isinstance(record, Placement):
                self.placement = record
            if isinstance(record, StreamPredicates):
                self.filters[record.stream] = record
            if isinstance(record, NamedGraph):
                self.registrar.record_graph(record.iri)
            if isinstance(record, CoordinatorState):
                self.committed, self.insertions = record, record.insertions
                self.registrar.commands = record.commands
        for command in sorted(commands, key=lambda r: r.number):
            self.registrar.restore(command)
        self.registrar.restored()
        self.registrar.new_graphs.clear()

    def current(self, requests: Mapping[str, int]) -> CoordinatorState:
        """Return the counters in memory as a record for the control topic. `requests`: the offset of the next record to
        process in each request topic.
        """
        return CoordinatorState(self.placement.epoch, self.registrar.commands, self.insertions, dict(requests))
