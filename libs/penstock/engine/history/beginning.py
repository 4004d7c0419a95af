"""The point at which a standing query begins if it asks for the past with FROM BEGINNING, or with STARTING AT an
earlier instant (ADR 87).

The retention of a stream keeps the tuples after a certain time. A query begins at the first instant for which two
conditions hold: every window is complete, and the stored graph is readable as of this instant. If the retention keeps
everything since the first progress of the query's streams, the query gets an early registration point: the point of a
query that was registered before this progress.

The point is a function of the query's windows and of the progress of the query's streams. The embedded engine and the
replicas of a cluster (ADR 107) compute the point with the function `beginning_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.standing.handover import WindowSpan
from penstock.errors import QueryError
from penstock.event_time.watermark import NEVER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.handover import Reads


_RELEASED = (
    "the query needs stream <{}> from its beginning, but it is retained only after {} ms: declare a longer retention_ms"
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The point at which a query begins. Times are in ms. `point` is the registration point. The first instant of the
    query is the earliest instant after `after`.
    """

    point: int
    after: int


@dataclass(frozen=True, slots=True)
class StreamPast:
    """The past of a stream. Times are in ms.

    - `begun`: a pair that describes the first progress of the stream, or None before any progress. The first element
    orders the streams by their first progress: an earlier progress has a smaller number. The second element is the
    registration point that this progress gives to waiting queries.
    - `closed_ms`: the end of the last closed batch, or None if no batch is closed.
    - `retention_ms`: the declared retention.
    - `readable_from`: a time. The stored graph is readable as of each later instant.
    """

    begun: tuple[int, int] | None
    closed_ms: int | None
    retention_ms: int
    readable_from: int = NEVER

    @property
    def retained_from(self) -> int:
        """The exclusive start of the period for which the retention keeps tuples."""
        return NEVER if self.closed_ms is None else self.closed_ms - self.retention_ms


def past_of(stream: LiveStream, readable_from: int = NEVER) -> StreamPast:
    """Return the past of a stream of an engine. `readable_from`: see `StreamPast`."""
    return StreamPast(stream.begun, stream.closed_ms, stream.declaration.retention_ms, readable_from)


def asks_for_past(start: int | None, pasts: Collection[StreamPast]) -> bool:
    """Return whether a query asks for the past. `start` is the instant of STARTING AT in ms, or None for FROM
    BEGINNING. `pasts` are the pasts of the query's streams.

    If none of the streams has progress, the result is False. Otherwise, the result is True for FROM BEGINNING. A query
    with STARTING AT asks for the past under two conditions: one of the query's streams has a retention, and the instant
    is not after the current registration point.
    """
    if all(past.begun is None for past in pasts):
        return False
    if start is None:
        return True
    if not any(past.retention_ms for past in pasts):
        return False
    return any(past.closed_ms is not None and start <= past.closed_ms for past in pasts)


def beginning_of(reads: Reads, pasts: Mapping[str, StreamPast], text: str) -> Beginning:
    """Return the point at which a query begins. `asks_for_past` must return True for the query. `pasts` contains the
    past of each stream of the query, by IRI. `text`: the text of the query, for errors.

    Count windows, and `[ALL]` without a retention, need all tuples since the first progress. QueryError if some of
    these tuples are released.
    """
    grid, origin = reads.grid, _origin(pasts.values())
    after = max(origin, *(past.readable_from for past in pasts.values()))
    windows = reads.windows if grid is not None else [WindowSpan(iri, None, 0) for iri in reads.streams]
    for window in windows:
        past = pasts[window.stream]
        needed = max(past.retained_from, after) if grid is None else past.retained_from
        if needed > origin:
            if window.range_ms is None or grid is None:
                raise QueryError(_RELEASED.format(window.stream, needed), 1, 1, window.stream, text)
            step_ms = window.step_ms
            after = max(after, grid.latest(step_ms, needed + window.range_ms - 1) + step_ms - 1)
    if grid is None:
        return Beginning(origin, origin)
    first = grid.next_after(after)
    starts = [grid.latest(window.step_ms, first) - window.range_ms for window in windows if window.range_ms is not None]
    point = origin if len(starts) < len(windows) else max(origin, min(starts))
    return Beginning(point, point if grid.next_after(point) == first else first - 1)


def _origin(pasts: Collection[StreamPast]) -> int:
    """Return a registration point in ms: the point of a query that was registered before the first progress of the
    query's streams.
    """
    return min(past.begun for past in pasts if past.begun is not None)[1]
