"""The generations of transient terms (generations), and the decision when the dictionary removes terms (ADR 50).

A generation is opened by new versions of the predicate filters. At these versions, adaptors request transient terms
again. The terms that were last requested before the generation can be removed when two conditions hold:

1. The dispatcher accepts no record of an older version any more. For each stream, the end of the last batch with such
   records is then known.
2. No window and no previous answer of a query contains tuples up to these ends. Query engines report in their
   heartbeats how far this is the case (`Heartbeat.floors`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.errors import DataError
from penstock.event_time.watermark import NEVER
from penstock.log import TransientError
from penstock.wire import StreamPredicates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.services.coordinator.control_state import ControlState
    from penstock.services.coordinator.predicate_demand import KnownVersions
    from penstock.services.coordinator.state_writer import StateWriter
    from penstock.wire import Heartbeat, StreamDeclaration

_log = logging.getLogger("penstock.coordinator")
_ATTEMPT_MS = 1_000  # time between two attempts to remove terms, or to examine the reports of engines


class TermRemover(Protocol):
    """The dictionary service, as the coordinator sees it."""

    def forget(self, generation: int) -> int:
        """Remove some transient terms that were last requested before a generation. Returns their number; 0 if there
        are none. DataError if the dictionary cannot remove terms. TransientError if it is unavailable; retry.
        """
        ...


@dataclass(frozen=True, slots=True)
class OpenGeneration:
    """The generation that this instance has opened last. `versions`: by stream, the declaration and the version of the
    filter that opened the generation.
    """

    generation: int
    opened_ms: int
    versions: dict[str, tuple[StreamDeclaration, int]]


class TermGenerations:
    """Opens generations, and lets the dictionary remove terms. Call `step` regularly.

    `after_ms`: minimum duration of a generation. `removed`: number of terms that were removed on behalf of this object.
    """

    def __init__(
        self, state: ControlState, writer: StateWriter, known: KnownVersions, remover: TermRemover, after_ms: int
    ) -> None:
        self._state, self._writer, self._known = state, writer, known
        self._remover, self._after_ms = remover, after_ms
        self._open: OpenGeneration | None = None
        self._next_ms: int | None = None
        self._continues = True
        self.removed = 0
        self.error: str | None = None  # why the dictionary cannot remove terms

    def step(self, engines: Iterable[Heartbeat], now_ms: int) -> None:
        """Perform the next action, if it is due: open a generation, or remove terms. `engines`: the latest heartbeats
        of query engines.
        """
        if self._next_ms is None:
            self._next_ms = now_ms + self._after_ms
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + min(_ATTEMPT_MS, self._after_ms)
        if self._open is None:
            self._begin(now_ms)
        elif self._clear(self._open, engines):
            self._remove(self._open)

    def _begin(self, now_ms: int) -> None:
        """Open a generation, with a new filter version for each stream whose timing tuples have transient terms. The
        first call of an instance instead continues the generation of an earlier instance, if there is one.
        """
        filters = self._state.filters
        streams = {iri: stream for iri, stream in self._state.registrar.streams.items() if stream.may_discard}
        if not streams:
            return
        generation = max((record.generation for record in filters.values()), default=0)
        if self._continues and generation:
            records = [filters[iri] for iri in streams if iri in filters and filters[iri].generation]
        else:
            generation += 1
            records = [_renewed(filters.get(iri), iri, generation) for iri in streams]
            self._writer.commit_filters(records)
        self._continues = False
        versions = {record.stream: (streams[record.stream], record.version) for record in records}
        self._open = OpenGeneration(generation, now_ms, versions)

    def _clear(self, opened: OpenGeneration, engines: Iterable[Heartbeat]) -> bool:
        """Return whether no process can use the id of a term that was last requested before the generation."""
        declared = self._state.registrar.streams
        ends: dict[str, int] = {}
        for iri, (stream, version) in opened.versions.items():
            if iri not in declared or declared[iri].number != stream.number:
                continue  # dropped; an engine that has applied the drop does not report the stream
            end_ms = self._known.complete_from(stream, version)
            if end_ms is None:
                return False
            if end_ms != NEVER:
                ends[str(stream.number)] = end_ms
        numbers = {str(stream.number) for stream in declared.values()}
        return any(_reached(engine, ends, numbers) for engine in engines)

    def _remove(self, opened: OpenGeneration) -> None:
        try:
            removed = self._remover.forget(opened.generation)
        except TransientError:
            return
        except DataError as error:
            if self.error is None:
                _log.error("the dictionary cannot remove terms: %s", error)
            self.error, removed = str(error), 0
        self.removed += removed
        if removed:
            self._next_ms = 0  # the rest, in the next step
        else:
            self._open, self._next_ms = None, opened.opened_ms + self._after_ms


def _reached(engine: Heartbeat, ends: dict[str, int], declared: set[str]) -> bool:
    """Return whether an engine reports that no query can use tuples of streams up to `ends`. `declared`: the numbers of
    all declared streams. An engine that reports another stream has not applied the drop of this stream yet.
    """
    floors = engine.floors
    if not floors or not floors.keys() <= declared:
        return False
    return all(number in floors and floors[number] >= end_ms for number, end_ms in ends.items())


def _renewed(current: StreamPredicates | None, stream: str, generation: int) -> StreamPredicates:
    """Return the next version of a filter, which begins a generation. The filter passes the same predicates."""
    if current is None:
        return StreamPredicates(stream, 1, (), np.empty(0, np.int64), 0, generation)
    return replace(current, version=current.version + 1, generation=generation)
