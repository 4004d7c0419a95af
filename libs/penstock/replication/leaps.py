"""Leaps of event time: which instants of a query are not evaluated (docs/semantics.md §2, ADR 57).

A leap is one advance of one stream that makes more than `max_catch_up` instants of a query due. Whether an advance is a
leap depends on the log only: on the query's record, its registration point, and the progress of its streams before and
after the advance. All engines therefore compute the same gaps. An engine that lags behind the log applies many steps
with small advances, and evaluates all of their instants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.event_time.gaps import Gap
from penstock.event_time.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.wire import QueryRegistration

MAX_GAPS = 1_000
"""Maximum number of gaps per query in a replica. Older ones are removed."""


def grid_of(record: QueryRegistration) -> Grid | None:
    """Return the grid of a query's instants, or None if its windows count tuples."""
    if not record.steps:
        return None
    start = record.starting_at_ms
    return Grid(start or 0, record.steps, bounded=start is not None)


def stable(streams: Iterable[str], closed: Mapping[str, int | None], ended: Mapping[str, int | None]) -> int | None:
    """Return the time in ms up to which all streams are closed (Wukong+S: Stable_VTS), or None if a stream has no
    progress. `closed`: the end of each stream's last closed batch, in ms.

    Ended streams do not hold back the others; `ended` has the end of their last closed batch, by IRI. If all streams
    have ended, the result is the latest of these ends.
    """
    names = list(streams)
    live = [closed[iri] for iri in names if iri not in ended]
    if not live:
        return max((end for iri in names if (end := ended[iri]) is not None), default=None)
    found = [end for end in live if end is not None]
    return min(found) if len(found) == len(live) else None


def gap_of(record: QueryRegistration, point: int | None, before: int | None, now: int | None) -> Gap | None:
    """Return the gap between two stable times of a query. None if at most `max_catch_up` instants became due, if the
    windows count tuples, or while `point` or `now` is None.

    `point`: the registration point. `before`, `now`: the stable times (see `stable`) before and after an advance. All
    in ms.
    """
    grid = grid_of(record)
    if grid is None or point is None or now is None:
        return None
    after = point if before is None else max(point, before)
    count = grid.count(after, now)
    return Gap(after, now, count) if count > record.max_catch_up else None
