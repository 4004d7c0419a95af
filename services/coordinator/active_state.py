"""The active coordinator: its state, and the components that change the state. The control topic contains the state."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from penstock.engine.limits import MAX_CATCH_UP, Limits
from penstock.log import Record
from penstock.mapping.encodings.schema_registration import SchemaRegistration
from penstock.replication.placement_view import KEY as PLACEMENT
from penstock.services.coordinator.control_state import ControlState
from penstock.services.coordinator.filter_updates import FilterUpdates
from penstock.services.coordinator.generations.term_generations import TermGenerations
from penstock.services.coordinator.insertion_writer import CompletedRequests, InsertionWriter
from penstock.services.coordinator.predicate_demand import KnownVersions, PredicatePushdown
from penstock.services.coordinator.query_commands import QueryCommands
from penstock.services.coordinator.registrar import Registrar
from penstock.services.coordinator.shares import Loads, accepting, next_placement, reason_to_move
from penstock.services.coordinator.state_writer import StateWriter
from penstock.services.coordinator.stream_commands import StreamCommands
from penstock.wire import encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.coordinator.control_state import Opening
    from penstock.services.coordinator.generations.term_generations import TermRemover
    from penstock.wire import Heartbeat


SETTLE_MS = 30_000
"""Time in ms after a move of buckets. During this time, differences between loads cause no further move."""


@dataclass(frozen=True, slots=True)
class Move:
    """The last change of the buckets' engines. `buckets`: the previous engine (or None) and the new engine of each
    bucket that was moved.
    """

    time_ms: int
    reason: str
    buckets: dict[str, tuple[str | None, str]]


@dataclass(frozen=True, slots=True)
class Forgetting:
    """The dictionary service that removes terms, and the minimum duration of a generation in ms (ADR 50)."""

    remover: TermRemover
    after_ms: int


class Active:
    """The active instance's state, and the components that change the state. The components are `streams`, `queries`,
    `insertions` and `filters`. The method `place` changes the placement.

    `writer` commits each change as one transaction. `discard_after_ms`: time in ms after which adaptors can discard a
    predicate that no query reads. None means that adaptors discard nothing. `max_catch_up`: the default for
    registrations that do not set `max_catch_up`. `schemas`: registers the schemas of result records in Avro.
    `forgetting`: how terms are removed; None: no term is removed.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        opening: Opening,
        discard_after_ms: int | None = None,
        max_catch_up: int = MAX_CATCH_UP,
        schemas: SchemaRegistration | None = None,
        forgetting: Forgetting | None = None,
    ) -> None:
        self._topics = topics
        records = opening.records()
        known = KnownVersions(log, topics.names)
        self.registrar = Registrar(
            Limits(max_catch_up=max_catch_up), topics.buckets, lambda iri: known.closed_ms(self.registrar.streams[iri])
        )
        self.state = ControlState(self.registrar, records)
        self.writer = StateWriter(log, topics, opening.writer, self.state)
        pushdown = None if discard_after_ms is None else PredicatePushdown(discard_after_ms)
        self.filters = FilterUpdates(self.state, self.writer, known, pushdown)
        self.generations = None
        if forgetting is not None:
            self.generations = TermGenerations(self.state, self.writer, known, forgetting.remover, forgetting.after_ms)
        self.streams = StreamCommands(log, topics, self.registrar, self.writer, self.filters)
        schemas = schemas or SchemaRegistration(None)
        self.queries = QueryCommands(topics, self.registrar, self.writer, self.filters, schemas)
        self.insertions = InsertionWriter(topics, self.state, self.writer, CompletedRequests(records))
        self._loads: dict[str, int] = {}
        self.settle_ms = SETTLE_MS
        self._moved_ms = -SETTLE_MS
        self.last_move: Move | None = None

    @property
    def requests(self) -> Mapping[str, int]:
        """The offset of the next record to process in each request topic, as of the last commit."""
        return self.state.committed.requests

    def place(self, stores: Mapping[str, Heartbeat], engines: Mapping[str, Heartbeat], now_ms: int) -> bool:
        """Assign shards to stores and buckets to engines. Return whether the placement changed.

        `stores`, `engines`: the latest heartbeats, by instance.
        """
        before = self.state.placement
        for instance, beat in engines.items():
            self._loads.update({b: load for b, load in beat.loads.items() if before.buckets.get(b) == instance})
        loads = Loads(self._loads, now_ms - self._moved_ms >= self.settle_ms)
        placement = next_placement(self._topics.shards, self._topics.buckets, before, stores, engines, loads)
        if placement is None:
            return False
        self.writer.commit([Record(self._topics.names.control, encode(placement), PLACEMENT)])
        self.state.placement = placement
        if placement.buckets != before.buckets:
            self._moved_ms = now_ms
            reason = reason_to_move(self._topics.buckets, before.buckets, accepting(engines), loads)
            moved = {b: (before.buckets.get(b), e) for b, e in placement.buckets.items() if before.buckets.get(b) != e}
            self.last_move = Move(now_ms, reason or "", moved)
        return True

    def explained(self, engines: Mapping[str, Heartbeat]) -> dict[str, Any]:
        """Return the placement as JSON. The key `buckets` has the engine and the measured load of each bucket, in µs of
        work per second (null if not measured). The key `engines` has the sum of the loads of each engine, and whether
        the engine accepts buckets. The key `shards` has the store of each shard. The key `last_move` has the last
        change of the buckets' engines by this coordinator.

        `engines`: the latest heartbeats, by instance.
        """
        placement, ready = self.state.placement, accepting(engines)
        sums = dict.fromkeys(sorted(engines.keys() | set(placement.buckets.values())), 0)
        for bucket, engine in placement.buckets.items():
            sums[engine] += self._loads.get(bucket, 0)
        return {
            "epoch": placement.epoch,
            "buckets": {b: {"engine": e, "load": self._loads.get(b)} for b, e in placement.buckets.items()},
            "engines": {e: {"load": load, "accepts": e in ready} for e, load in sums.items()},
            "shards": placement.shards,
            "preparing": placement.preparing,
            "last_move": None if self.last_move is None else asdict(self.last_move),
        }

    def close(self) -> None:
        """Close the writer and the readers."""
        self.writer.close()
        self.filters.close()
