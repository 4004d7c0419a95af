"""The handover of a query's name from one text to another text. A handover decides which instants each text answers,
and which tuples the later text sees (docs/semantics.md §3, ADR 95).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.history.timeline import retained_from
from penstock.engine.windows.reach import reach
from penstock.engine.windows.trigger import step_of
from penstock.engine.windows.window_contents import range_of
from penstock.errors import LimitError
from penstock.event_time.gaps import Gap
from penstock.query.ir import TimeRange
from penstock.query.resolve import error_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.engine.limits import Limits
    from penstock.engine.standing.groups import Group, Member
    from penstock.event_time.grid import Grid
    from penstock.query.ir import ContinuousQuery


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """A time window of a text over a stream. The stream is given by its IRI. If `range_ms` is None, the window begins
    with the registration point.
    """

    stream: str
    range_ms: int | None
    step_ms: int


@dataclass(frozen=True, slots=True)
class Reads:
    """The streams and windows that the text of a query reads. `streams`: the IRIs of the query's streams. `windows`:
    the query's time windows. `grid`: the grid of the query's instants. A query has either time windows or count
    windows. For a query with count windows, `grid` is None and `windows` is empty.
    """

    streams: tuple[str, ...]
    grid: Grid | None
    windows: tuple[WindowSpan, ...]

    def starts(self, after: int) -> Iterator[tuple[str, int | None]]:
        """Yield the stream of each window and the exclusive start of this window at the first instant after `after`.
        The start is None if the window begins with the registration point.
        """
        if self.grid is None:
            yield from ((stream, None) for stream in self.streams)
            return
        first = self.grid.next_after(after)
        for window in self.windows:
            start = None if window.range_ms is None else self.grid.latest(window.step_ms, first) - window.range_ms
            yield window.stream, start


@dataclass(frozen=True, slots=True)
class Handover:
    """A handover. All times are in ms.

    The earlier text answers the instants up to and including `until`. The later text answers the instants after
    `after`. The two times differ only if the later text reads a stream from a time after `until`. `point` is the
    registration point of the later text.
    """

    point: int
    until: int
    after: int

    def gap(self, grid: Grid | None) -> Gap | None:
        """Return the gap between the two texts, or None. `grid` is the grid of the later text, or None for count
        windows.
        """
        count = 0 if grid is None else grid.count(self.until, self.after)
        return Gap(self.until, self.after, count) if count else None


def hand_over(
    earlier: Reads,
    later: Reads,
    point: int,
    until: int,
    closed: Mapping[str, int],
    retained: Mapping[str, int],
    not_before: int | None = None,
) -> Handover:
    """Return the handover from one text to another. Times are in ms.

    `point` is the registration point P of the earlier text. The earlier text's instants at or before `until` are due.
    `closed` maps each stream with progress to the end of the stream's last closed batch. `retained` maps a stream to a
    time. The declared retention keeps the stream's tuples after this time. The later text's registration point must not
    precede `not_before`.

    The later text keeps P if all tuples that its windows need are still in the earlier text's windows or in the
    declared retention. Otherwise, the later text's registration point is the first time from which all needed tuples
    are available. Count windows start to count at the handover.
    """
    # The stored graph is not readable as of an earlier instant of a stream that the earlier text does not name.
    fresh = [closed[stream] for stream in later.streams if stream not in earlier.streams and stream in closed]
    after = max([until, *fresh])
    moved = point if later.grid is not None else max(point, after)
    held: dict[str, int] = {}
    for stream, start in earlier.starts(until) if earlier.grid is not None else ():
        begin = point if start is None else max(start, point)
        held[stream] = min(begin, held.get(stream, begin))
    for stream, start in later.starts(after):
        if stream not in closed:
            continue  # the stream has no progress, so none of its tuples are released
        available = min(closed[stream], retained[stream], held.get(stream, closed[stream]))
        if start is None or start < available:
            moved = max(moved, available)
    if not_before is not None:
        moved = max(moved, not_before)
    return Handover(moved, until, max(after, moved))


def reads_of(group: Group) -> Reads:
    """Return the streams and windows that the queries of a group read."""
    query, windows = group.query, []
    for clause in query.windows:
        if isinstance(clause.range, TimeRange):
            range_ms = range_of(clause, group.by_iri[clause.stream])
            windows.append(WindowSpan(clause.stream, range_ms, step_of(query, clause.range)))
    return Reads(tuple(group.by_iri), group.grid, tuple(windows))


def hand_over_member(earlier: Group, point: int, last: int, later: Group) -> Handover:
    """Return the handover from one query to another query of the same group or of another group. `point` is the
    registration point P of the earlier query. `last` is the earlier query's last evaluated instant, or the time after
    which the earlier query begins.
    """
    reached = reach(earlier)
    streams = {stream.iri: stream for stream in (*earlier.streams, *later.streams)}
    closed = {iri: stream.closed_ms for iri, stream in streams.items() if stream.closed_ms is not None}
    retained = {iri: retained_from(streams[iri]) for iri in closed}
    until = last if reached is None else max(reached, last)
    return hand_over(reads_of(earlier), reads_of(later), point, until, closed, retained)


def check_replacement(member: Member, later: ContinuousQuery) -> None:
    """Raise QueryError if a resolved query cannot replace the query of `member`. There are two possible reasons: one of
    the two queries publishes a stream, or the later query asks for the past.
    """
    if later.from_beginning:
        message = "FROM BEGINNING is not available in a replacement: the earlier text has answered the past"
        raise error_at(later, later.at, message, "FROM BEGINNING")
    if member.group.publishes is not None or later.publishes:
        message = f"query {member.name} cannot be replaced, because a stream is published: stop the query first"
        raise error_at(later, later.name_at, message)


def check_due(limits: Limits, member: Member, later: Group, handover: Handover, *, replaying: bool) -> None:
    """Raise LimitError if a handover makes more instants of a query due than `max_catch_up` or `max_unpolled` allow.
    Instants become due if the earlier text of `member` has waited for a stream for which the later text does not wait.

    `replaying`: whether recovery replays the replacement. `max_unpolled` is then not checked, because recovery itself
    limits the pending evaluations.
    """
    reached = reach(later)
    if reached is None or later.grid is None:
        return
    due = later.grid.count(handover.after, reached)
    way = "stop the query and register the new text, which then begins with the latest instant"
    if due > limits.max_catch_up:
        raise LimitError(
            f"the replacement of query {member.name} would fire {due} times (max_catch_up is {limits.max_catch_up}): "
            + way,
            limit="max_catch_up",
        )
    queue = member.result_queue
    if due and not replaying and not queue.subscribed and (held := len(queue)) + due > limits.max_unpolled:
        raise LimitError(
            f"query {member.name} holds {held} evaluations that were not polled, and its replacement would fire {due} "
            f"times (max_unpolled is {limits.max_unpolled}): poll it or subscribe to it, or {way}",
            limit="max_unpolled",
        )


def may_join(group: Group, handover: Handover) -> bool:
    """Return whether a query can continue in a group after a handover. The query can continue there in two cases: the
    group has no cohort with the query's registration point, or this cohort has the same next instant as the query.

    The streams of a group without progress can begin at the query's registration point. Other members of the group can
    then begin at the same point. The query can therefore join such a group only if the query has the same next instant
    as these members.
    """
    grid, cohort = group.grid, group.apart.get(handover.point)
    if grid is not None and all(stream.closed_ms is None for stream in group.streams):
        return grid.next_after(handover.after) == grid.next_after(handover.point)
    if cohort is None or cohort.trigger is None:
        return cohort is None
    if group.grid is None:
        return cohort.trigger.last == handover.after
    return cohort.next == group.grid.next_after(handover.after)
