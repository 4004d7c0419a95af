"""Leaps of event time in the log: which instants of a query no engine evaluates (docs/semantics.md §2, ADR 57).

A leap is one move of one stream that makes more instants of a query due at once than its registration's `max_catch_up`.
That depends on the log alone (the query's record and registration point, and where its streams stand at that step), so
every engine finds the same gap, whenever it evaluates. An engine that is behind the log finds many steps, each of them
small, and evaluates all of their instants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.event_time.gaps import Gap
from penstock.event_time.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.wire import QueryRegistration

MAX_GAPS = 1_000
"""Gaps of one query that replicas keep; the oldest make room."""


def grid_of(record: QueryRegistration) -> Grid | None:
    """Return the grid of a query's instants; None where its windows count tuples."""
    if not record.steps:
        return None
    start = record.starting_at_ms
    return Grid(start or 0, record.steps, bounded=start is not None)


def stable(streams: Iterable[str], closed: Mapping[str, int | None], ended: Mapping[str, int | None]) -> int | None:
    """Return Stable_VTS of some streams as a time, None where one has no progress. Streams that have ended (`ended`:
    where) hold nothing up; where all have, what the furthest has closed is due.
    """
    names = list(streams)
    live = [closed[iri] for iri in names if iri not in ended]
    if not live:
        return max((end for iri in names if (end := ended[iri]) is not None), default=None)
    found = [end for end in live if end is not None]
    return min(found) if len(found) == len(live) else None


def gap_of(record: QueryRegistration, point: int | None, before: int | None, now: int | None) -> Gap | None:
    """Return the gap of a query whose streams were stable at `before` and are at `now`; None where at most
    `max_catch_up` of its instants became due. `point`: its registration point.
    """
    grid = grid_of(record)
    if grid is None or point is None or now is None:
        return None
    after = point if before is None else max(point, before)
    count = grid.count(after, now)
    return Gap(after, now, count) if count > record.max_catch_up else None
