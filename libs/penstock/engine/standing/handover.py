"""The handover of a name from one text to another: which instants each of them answers, and which tuples the later text
sees (docs/semantics.md §3, ADR 95).
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
from penstock.event_time.watermark import NEVER
from penstock.query.ir import TimeRange
from penstock.query.resolve import error_at

if TYPE_CHECKING:
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.limits import Limits
    from penstock.engine.standing.groups import Group, Member
    from penstock.event_time.grid import Grid
    from penstock.query.ir import ContinuousQuery


@dataclass(frozen=True, slots=True)
class Handover:
    """A handover. All times are in ms.

    The earlier text answers the instants up to `until`, the later one those after `after`. The two times differ only if
    the later text reads a stream from a time after `until`. `point`: the registration point of the later text.
    """

    point: int
    until: int
    after: int

    def gap(self, grid: Grid | None) -> Gap | None:
        """Return the gap between the two texts, or None. `grid`: that of the later text; None: count windows."""
        count = 0 if grid is None else grid.count(self.until, self.after)
        return Gap(self.until, self.after, count) if count else None


def hand_over(earlier: Group, point: int, last: int, later: Group) -> Handover:
    """Return the handover from a query of one group to a query of another group, or of the same one. `point`: the
    registration point P of the earlier query. `last`: its last evaluated instant, or the time after which it begins.

    The later query keeps P if the windows of the earlier one and the declared retention still have all tuples that its
    own windows need. Otherwise, its registration point is the time from which they have the tuples. Count windows count
    from the handover.
    """
    reached = reach(earlier)
    until = last if reached is None else max(reached, last)
    # The stored graph is not readable as of an earlier instant of a stream that the earlier query does not name.
    fresh = (stream.closed_ms for stream in later.streams if stream not in earlier.streams)
    after = max([until, *(closed for closed in fresh if closed is not None)])
    moved = point if later.grid is not None else max(point, after)
    for stream, start in _starts(later, after):
        available = _available_from(earlier, stream, until, point)
        if start is None or start < available:
            moved = max(moved, available)
    return Handover(moved, until, max(after, moved))


def check_replacement(member: Member, later: ContinuousQuery) -> None:
    """Raise QueryError if a resolved query cannot replace a query, because one of the two publishes a stream."""
    if member.group.publishes is not None or later.publishes:
        message = f"query {member.name} cannot be replaced, because a stream is published: stop the query first"
        raise error_at(later, later.name_at, message)


def check_due(limits: Limits, member: Member, later: Group, handover: Handover, *, replaying: bool) -> None:
    """Raise LimitError if a handover makes more instants of a query due than `max_catch_up` or `max_unpolled` allow.
    They are due if the later text does not wait for a stream for which the earlier text of `member` has waited.

    `replaying`: whether recovery limits the pending evaluations.
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
    """Return whether a query may continue in a group after a handover: the cohort with its registration point, if there
    is one, has the same next instant.
    """
    cohort = group.apart.get(handover.point)
    if cohort is None or cohort.trigger is None:
        return cohort is None
    if group.grid is None:
        return cohort.trigger.last == handover.after
    return cohort.next == group.grid.next_after(handover.after)


def _starts(group: Group, after: int) -> list[tuple[LiveStream, int | None]]:
    """Return the streams of the group's windows, with the exclusive starts of the windows at the first instant after
    `after`. None: the window begins with the registration point.
    """
    starts: list[tuple[LiveStream, int | None]] = []
    for clause in group.query.windows:
        stream = group.by_iri[clause.stream]
        range_ms = range_of(clause, stream) if isinstance(clause.range, TimeRange) else None
        if group.grid is None or range_ms is None:
            starts.append((stream, None))
        else:
            assert isinstance(clause.range, TimeRange), clause
            first = group.grid.next_after(after)
            starts.append((stream, group.grid.latest(step_of(group.query, clause.range), first) - range_ms))
    return starts


def _available_from(earlier: Group, stream: LiveStream, until: int, point: int) -> int:
    """Return the time after which all tuples of a stream are kept by its retention, or by the windows of a query with
    registration point `point` that has evaluated its instants up to `until`.
    """
    if stream.closed_ms is None:
        return NEVER
    released = min(stream.closed_ms, retained_from(stream))
    if earlier.grid is None:
        return released
    starts = [start for read, start in _starts(earlier, until) if read is stream]
    return min([released, *(point if start is None else max(start, point) for start in starts)])
