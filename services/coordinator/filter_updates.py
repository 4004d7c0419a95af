"""Updates of predicate filters. A filter grows when a query reads further predicates. A filter shrinks when it contains
predicates that no query reads any more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import NotYetError
from penstock.event_time.watermark import NEVER
from penstock.services.coordinator.predicate_demand import grown, includes, predicates_read, timing_of, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.query.ir import Statement
    from penstock.services.coordinator.control_state import ControlState
    from penstock.services.coordinator.predicate_demand import KnownVersions, PredicatePushdown, PredicatesRead
    from penstock.services.coordinator.state_writer import StateWriter
    from penstock.wire import StreamPredicates


class FilterUpdates:
    """Keeps each stream's predicate filter consistent with the standing queries (ADR 45).

    `known`: the filter versions that adaptors apply; `close` closes this object. `pushdown`: decides when a filter
    shrinks. None means that filters never shrink.
    """

    def __init__(
        self, state: ControlState, writer: StateWriter, known: KnownVersions, pushdown: PredicatePushdown | None
    ) -> None:
        self._state = state
        self._writer = writer
        self._known = known
        self._pushdown = pushdown
        self._shrunk = -1  # the number of commands at the last examination of the queries in `shrink`

    def unfiltered(self, iris: Iterable[str]) -> dict[str, StreamPredicates]:
        """Return a new filter version for each stream, by IRI. The new version lets all predicates through. Streams
        without a filter are omitted.

        The version has no generation: an adaptor that knows it, but does not know the new declaration yet, requests
        permanent terms. A timing predicate of the earlier stream can be timeless in the new one (ADR 50).
        """
        filters = self._state.filters
        known = ((iri, filters[iri]) for iri in iris if iri in filters)
        return {iri: replace(grown(iri, before, None), generation=0) for iri, before in known}

    def await_adaptors(self, statement: Statement, earlier: PredicatesRead | None = None) -> int | None:
        """Extend the filters by the predicates that a query reads. NotYetError until all adaptors apply filters with
        these predicates.

        `earlier` contains the predicates that the replaced query reads, by stream. None means that the query replaces
        no query.

        Returns the end in ms of the last batch from which an earlier filter possibly removed tuples that the query
        reads. Returns None if there is no such batch. The registration point of a new query is not before the closed
        batches, so only open batches count. A query that replaces another query can read closed batches. For such a
        query, closed batches count, too, unless the earlier query reads all needed predicates of the stream (ADR 95).
        """
        if not self._state.filters:
            return None
        more, waits, ends = [], [], []
        for iri, every in predicates_read(statement).items():
            stream, current = self._state.registrar.streams.get(iri), self._state.filters.get(iri)
            if stream is None or current is None or not stream.may_discard:
                continue
            needed = timing_of(stream, every)
            version = version_of(current, needed)
            if version is None:
                more.append(grown(iri, current, needed))
            end_ms = None
            if version is not None:
                covered = earlier is None or includes(timing_of(stream, earlier.get(iri, frozenset())), needed)
                end_ms = (self._known.cut_until if covered else self._known.complete_from)(stream, version)
            if end_ms is None:
                waits.append(iri)
                if self._pushdown is not None:
                    self._pushdown.record(iri, needed)
            else:
                ends.append(end_ms)
        if more:
            self._writer.commit_filters(more)
        if waits:
            streams = ", ".join(f"<{iri}>" for iri in waits)
            raise NotYetError(f"adaptors of {streams} do not yet pass on all predicates that the query reads: retry")
        found = max(ends, default=NEVER)
        return None if found == NEVER else found

    def shrink(self, now_ms: int) -> bool:
        """Remove from the filters the predicates that no query has read for some time. Returns whether a filter
        changed.
        """
        if self._pushdown is None:
            return False
        registrar = self._state.registrar
        if registrar.commands == self._shrunk and now_ms < self._pushdown.next_ms:
            return False
        by_stream: dict[str, set[frozenset[str] | None]] = {}
        for reads in registrar.reads.values():
            for iri, needed in reads.items():
                by_stream.setdefault(iri, set()).add(needed)
        self._shrunk = registrar.commands
        less = self._pushdown.due(registrar.streams.values(), self._state.filters, by_stream, now_ms)
        if less:
            self._writer.commit_filters(less)
        return bool(less)

    def close(self) -> None:
        """Close the reader of the adaptors' filter versions."""
        self._known.close()
