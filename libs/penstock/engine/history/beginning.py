"""The point at which a standing query begins if it asks for the past with FROM BEGINNING, or with STARTING AT an
earlier instant (ADR 87).

The retention of a stream keeps the tuples after a certain time. A query begins at the first instant for which two
conditions hold: every window is complete, and the stored graph is readable as of this instant. If the retention keeps
everything since the first progress of the query's streams, the registration point is the same as if the query had been
registered before this progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.history.timeline import retained_from
from penstock.engine.windows.trigger import step_of
from penstock.engine.windows.window_contents import range_of
from penstock.errors import QueryError
from penstock.query.ir import TimeRange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.engine.history.timeline import Timeline
    from penstock.engine.intake.streams import LiveStream
    from penstock.event_time.grid import Grid
    from penstock.query.ir import ContinuousQuery, WindowClause


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


def asks_for_past(query: ContinuousQuery, streams: Sequence[LiveStream]) -> bool:
    """Return whether a resolved query asks for the past. A query with FROM BEGINNING asks for the past. A query with
    STARTING AT asks for the past if one of its streams has a retention, and if the instant is not after the
    registration point. If none of the streams has progress, there is no past.
    """
    if all(stream.begun is None for stream in streams):
        return False
    if query.from_beginning:
        return True
    start = query.starting_at_ms
    if start is None or not any(stream.declaration.retention_ms for stream in streams):
        return False
    return any(stream.closed_ms is not None and start <= stream.closed_ms for stream in streams)


def beginning_of(
    query: ContinuousQuery,
    grid: Grid | None,
    streams: Mapping[str, LiveStream],
    timeline: Timeline,
    *,
    reads_stored: bool,
) -> Beginning:
    """Return the point at which a query begins. `asks_for_past` must be true for the query. If `grid` is None, the
    query has count windows.

    Count windows, and `[ALL]` without a retention, need all tuples since the first progress. QueryError if some of
    these tuples are released.
    """
    origin = _origin(list(streams.values()))
    after = origin
    if reads_stored:
        after = max(after, *(timeline.known_from(stream) for stream in streams.values()))
    windows = [(clause, streams[clause.stream]) for clause in query.windows]
    for clause, stream in windows:
        needed = max(retained_from(stream), after) if grid is None else retained_from(stream)
        if needed > origin:
            range_ms = _reaches_back(clause, stream)
            if range_ms is None or grid is None:
                raise QueryError(_RELEASED.format(stream.iri, needed), 1, 1, stream.iri, query.text)
            after = max(after, grid.latest(_step(query, clause), needed + range_ms - 1) + _step(query, clause) - 1)
    if grid is None:
        return Beginning(origin, origin)
    first = grid.next_after(after)
    starts = [
        grid.latest(_step(query, clause), first) - range_ms
        for clause, stream in windows
        if (range_ms := _reaches_back(clause, stream)) is not None
    ]
    point = origin if len(starts) < len(windows) else max(origin, min(starts))
    return Beginning(point, point if grid.next_after(point) == first else first - 1)


def _origin(streams: Sequence[LiveStream]) -> int:
    """Return, in ms, the registration point of a query that was registered before the first progress of its streams."""
    return min(begun for stream in streams if (begun := stream.begun) is not None)[1]


def _reaches_back(clause: WindowClause, stream: LiveStream) -> int | None:
    """Return the range of a time window in ms, or None for a window over all tuples since the registration point."""
    return range_of(clause, stream) if isinstance(clause.range, TimeRange) else None


def _step(query: ContinuousQuery, clause: WindowClause) -> int:
    assert isinstance(clause.range, TimeRange), clause
    return step_of(query, clause.range)
