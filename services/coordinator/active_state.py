"""The active coordinator: its state, which the control topic contains, and the components that change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.limits import MAX_CATCH_UP, Limits
from penstock.log import Record
from penstock.replication.placement_view import KEY as PLACEMENT
from penstock.services.coordinator.control_state import ControlState
from penstock.services.coordinator.filter_updates import FilterUpdates
from penstock.services.coordinator.insertion_writer import CompletedRequests, InsertionWriter
from penstock.services.coordinator.predicate_demand import KnownVersions, PredicatePushdown
from penstock.services.coordinator.query_commands import QueryCommands
from penstock.services.coordinator.registrar import Registrar
from penstock.services.coordinator.shares import next_placement
from penstock.services.coordinator.state_writer import StateWriter
from penstock.services.coordinator.stream_commands import StreamCommands
from penstock.wire import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.coordinator.control_state import Opening
    from penstock.wire import Heartbeat


class Active:
    """The active instance's state, and the components that change it: `streams`, `queries`, `insertions` and `filters`;
    `place` changes the placement.

    `writer` commits each change as one transaction. `discard_after_ms`: time in ms after which adaptors may discard a
    predicate that no query reads; None: they discard nothing. `max_catch_up`: the default for registrations that do not
    set it.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        opening: Opening,
        discard_after_ms: int | None = None,
        max_catch_up: int = MAX_CATCH_UP,
    ) -> None:
        self._topics = topics
        records = opening.records()
        self.registrar = Registrar(Limits(max_catch_up=max_catch_up))
        self.state = ControlState(self.registrar, records)
        self.writer = StateWriter(log, topics, opening.writer, self.state)
        pushdown = None if discard_after_ms is None else PredicatePushdown(discard_after_ms)
        self.filters = FilterUpdates(self.state, self.writer, KnownVersions(log, topics.names), pushdown)
        self.streams = StreamCommands(log, topics, self.registrar, self.writer, self.filters)
        self.queries = QueryCommands(topics, self.registrar, self.writer, self.filters)
        self.insertions = InsertionWriter(topics, self.state, self.writer, CompletedRequests(records))

    @property
    def requests(self) -> Mapping[str, int]:
        """For each request topic, the offset of the next record to process, as of the last commit."""
        return self.state.committed.requests

    def place(self, stores: Mapping[str, Heartbeat], engines: Mapping[str, Heartbeat]) -> bool:
        """Assign shards to stores and buckets to engines. Return whether the placement changed.

        `stores`, `engines`: the latest heartbeats, by instance.
        """
        placement = next_placement(self._topics.shards, self._topics.buckets, self.state.placement, stores, engines)
        if placement is None:
            return False
        self.writer.commit([Record(self._topics.names.control, encode(placement), PLACEMENT)])
        self.state.placement = placement
        return True

    def close(self) -> None:
        """Close the writer and the readers."""
        self.writer.close()
        self.filters.close()
