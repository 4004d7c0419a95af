"""Derived streams. A query publishes a derived stream with `REGISTER STREAM … AS CONSTRUCT`, and other queries read the
stream (docs/semantics.md §5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.intake.declaration import Declaration
from penstock.engine.windows.trigger import GridTrigger, grid_of
from penstock.event_time.grid import batch_start
from penstock.query.resolve import error_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.intake.streams import LiveStream, Streams
    from penstock.engine.standing.groups import Cohort, Group
    from penstock.engine.standing.stream_readers import Readers
    from penstock.query.ir import ContinuousQuery


def check_publication(query: ContinuousQuery, streams: Streams, groups: Iterable[Group]) -> None:
    """Raise QueryError if a query cannot publish its stream. There are three possible reasons: the stream already has a
    publisher, the stream contains pushed events, or the stream would depend on itself.
    """
    name = query.name
    assert name is not None
    if name in streams:
        stream = streams.get(name)
        if stream.publisher is not None:
            state = (
                "was published by a query that has stopped" if stream.ended else f"is published by {stream.publisher}"
            )
            raise error_at(query, query.name_at, f"stream <{name}> {state}")
        if stream.watermark is not None:
            raise error_at(query, query.name_at, f"stream <{name}> already carries pushed events")
    if _depends_on({clause.stream for clause in query.windows}, name, list(groups)):
        raise error_at(query, query.name_at, f"stream <{name}> would depend on itself: a cycle of queries")


def _depends_on(streams: set[str], target: str, groups: list[Group]) -> bool:
    """Return whether one of the streams is the stream `target`, or is derived from `target`, directly or through other
    streams.
    """
    feeds = {group.publishes.iri: group for group in groups if group.publishes is not None}
    seen, queue = set(streams), list(streams)
    while queue:
        stream = queue.pop()
        if stream == target:
            return True
        group = feeds.get(stream)
        for source in group.by_iri if group is not None else ():
            if source not in seen:
                seen.add(source)
                queue.append(source)
    return False


def publish_stream(query: ContinuousQuery, publisher: str, streams: Streams) -> LiveStream:
    """Create the stream that a query publishes. The batch interval of the stream is the query's smallest step. If the
    query has count windows, the batch interval is the smallest batch interval of the streams that the query reads.
    """
    assert query.name is not None
    grid = grid_of(query)
    if grid is not None:
        batch_ms = min(grid.steps)
    else:
        batch_ms = min(streams.get(clause.stream).batch_ms for clause in query.windows)
    return streams.publish(Declaration(query.name, timing="all"), publisher, batch_ms)


def set_depths(group: Group, readers: Readers) -> None:
    """Set the depth of a new group. Also set the depths of the groups that read the new group's derived stream,
    directly or through other derived streams. The depth of a group is the number of queries between the input streams
    and the group.
    """
    group.depth = max((stream.depth for stream in group.streams), default=0)
    if group.publishes is not None:
        group.publishes.depth = group.depth + 1
        for reader in readers.of(group.publishes):
            if reader.depth < group.publishes.depth:
                set_depths(reader, readers)


def publish(cohort: Cohort, block: Block, begin: Callable[[LiveStream, int], None]) -> None:
    """Add the rows of an execution to the cohort's derived stream, and advance the stream's watermark to
    `following_of(cohort)`.

    `begin` sets the registration point of queries that have waited for the stream's first progress.
    """
    stream, time = cohort.group.publishes, block.reading.time
    assert stream is not None
    following = following_of(cohort)
    count = len(block.columns[0]) if block.columns else 0
    begin(stream, batch_start(time, stream.batch_ms) if count else following)
    if count:
        times = np.full(count, time, np.int64)
        s, p, o = block.columns
        stream.append(times, s, p, o)
        stream.record(times[:1])
    stream.move(following)


def move_on(cohort: Cohort, begin: Callable[[LiveStream, int], None]) -> None:
    """Advance the watermark of the cohort's derived stream to `following_of(cohort)`, without an execution."""
    stream = cohort.group.publishes
    assert stream is not None
    following = following_of(cohort)
    if stream.watermark is None or following > stream.watermark:
        begin(stream, following)
        stream.move(following)


def following_of(cohort: Cohort) -> int:
    """Return a time in ms. The cohort will certainly report nothing more at or before this time.

    With time windows, the result is 1 ms before the next instant. With count windows, each stream gives a bound: the
    end of the stream's last closed batch, or the registration point P if no batch is closed. The result is the smallest
    bound of the streams that have not ended. If all streams have ended, the result is the largest bound. If the next
    report is known, the result is at most 1 ms before this report.
    """
    trigger = cohort.trigger
    if isinstance(trigger, GridTrigger):
        return trigger.next - 1
    streams, point = cohort.group.streams, cohort.point or 0
    closed = {stream: point if stream.closed_ms is None else stream.closed_ms for stream in streams}
    live = [end for stream, end in closed.items() if not stream.ended]
    bound = min(live) if live else max(closed.values())
    return bound if cohort.next is None else min(bound, cohort.next - 1)
