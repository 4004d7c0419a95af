"""The queries that begin in the past: their groups, their views of the stored graph, and their progress.

Each such query has a group and an incarnation of its own. (Groups share windows only if they have reached the same
instants.) While the query has due instants that are not evaluated yet, the query's group is in the backlog. Passes of
the schedule then leave the group out, and `catch_up` evaluates the group's instants in turns.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from penstock.engine.history.beginning import asks_for_past, beginning_of, past_of
from penstock.engine.history.timeline import Timeline
from penstock.engine.standing.handover import reads_of
from penstock.engine.windows.reach import reach
from penstock.engine.windows.trigger import CountTrigger
from penstock.event_time.watermark import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.core import _native as native
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.history.beginning import Beginning
    from penstock.engine.intake.streams import LiveStream, Streams
    from penstock.engine.standing.groups import Cohort, Group
    from penstock.engine.windows.schedule import Schedule
    from penstock.query.ir import ContinuousQuery


class History:
    """The past of an embedded engine. All access must be under the engine's lock. Times are in ms."""

    def __init__(self, core: EngineCore, store: native.Store, streams: Streams, schedule: Schedule) -> None:
        self._core = core
        self._streams = streams
        self._backlog = schedule.backlog
        self._schedule = schedule
        self._untils: dict[Group, int] = {}  # a group's instants at or before this time are in the past
        self._incarnations = 0
        self.timeline = Timeline(store, streams)

    def __bool__(self) -> bool:
        """Whether there is a query with due instants that are not evaluated yet."""
        return bool(self._backlog)

    def is_behind(self, group: Group) -> bool:
        """Return whether a group has due instants that are not evaluated yet."""
        return group in self._backlog

    def end_pass(self) -> None:
        """Handle the end of a pass of the schedule."""
        self.timeline.end(self._next_read)

    # ---- registration
    def incarnation_for(self, query: ContinuousQuery) -> int | None:
        """Return a new incarnation for the group of a resolved query that begins in the past. Return None for any other
        query.
        """
        if not query.from_beginning and query.starting_at_ms is None:
            return None
        pasts = [past_of(self._streams.get(clause.stream)) for clause in query.windows]
        return self.new_incarnation() if asks_for_past(query.starting_at_ms, pasts) else None

    def new_incarnation(self) -> int:
        """Return a new incarnation. A group needs a new incarnation if the group has not reached the same instants as
        the existing groups.
        """
        self._incarnations += 1
        return self._incarnations

    def beginning_of(self, group: Group) -> Beginning:
        """Return the point at which the query of a group begins. The incarnation of the group must come from
        `incarnation_for`. QueryError if the query needs tuples that are released.
        """
        assert group.plan is not None
        readable = self.timeline.known_from if group.plan.reads_stored else _always
        pasts = {stream.iri: past_of(stream, readable(stream)) for stream in group.streams}
        return beginning_of(reads_of(group), pasts, group.query.text)

    def begin(self, group: Group) -> None:
        """Let a group begin. Call this method after the group's cohort has started."""
        closed = [stream.closed_ms for stream in group.streams if stream.closed_ms is not None]
        for cohort in group.cohorts:
            if isinstance(cohort.trigger, CountTrigger):
                for stream in group.streams:
                    if stream.closed_ms is not None:
                        cohort.trigger.closed(stream)
        self._resume(group, max(closed))

    def _resume(self, group: Group, until: int) -> None:
        self._untils[group] = until
        due = reach(group)
        if due is not None and any(cohort.next is not None and cohort.next <= due for cohort in group.cohorts):
            self._backlog.add(group)

    def remove(self, group: Group) -> None:
        """Handle the removal of a group."""
        self._untils.pop(group, None)

    # ---- evaluation
    def is_past(self, group: Group, time: int) -> bool:
        """Return whether an evaluation of a group at an instant reads the past."""
        until = self._untils.get(group)
        return until is not None and (time <= until or group in self._backlog)

    def view(self, group: Group, time: int) -> native.Source:
        """Return the stored graph for an evaluation of a group at an instant in the past."""
        assert group.plan is not None
        if not group.plan.reads_stored:
            return self._core.stored((), read=False)
        return self.timeline.view(group.streams, time)

    def snapshot(self, group: Group, time: int) -> int:
        """Return a snapshot number. The group's evaluation at the past instant `time` reads this snapshot."""
        assert group.plan is not None
        if not group.plan.reads_stored:
            return self._core.store.latest()
        return self.timeline.period(group.streams, time)[1]

    def catch_up(self, fire: Callable[[Cohort], None], budget_s: float, only: Group | None = None) -> list[LiveStream]:
        """Evaluate due instants of queries that are behind, for about `budget_s` seconds. `fire` evaluates a cohort. If
        `only` is given, the call evaluates only instants of this group. The catch-up of a query pauses when the pending
        evaluations reach half of `max_unpolled` or of `unpolled_mb`. Returns the derived streams that have advanced.
        """
        groups = [only] if only is not None else self._backlog.groups()
        advanced = []
        for group in groups:
            if not self._has_room(group):
                continue
            deadline = perf_counter() + budget_s / len(groups)

            def stops(group: Group = group, deadline: float = deadline) -> bool:
                return perf_counter() > deadline or not self._has_room(group)

            if self._backlog.finish(group, fire, stops):
                self._untils[group] = max(s.closed_ms for s in group.streams if s.closed_ms is not None)
            if group.publishes is not None:
                advanced.append(group.publishes)
        return advanced

    def _has_room(self, group: Group) -> bool:
        limits = self._core.limits
        cohort = next(group.cohorts)
        if not len(cohort.log) or cohort.first.result_queue.subscribed or self._schedule.replaying:
            return True  # recovery limits pending evaluations itself
        most = limits.unpolled_mb << 20
        return len(cohort.log) < limits.max_unpolled // 2 and not 0 < most // 2 < self._schedule.unpolled.bytes

    def _next_read(self, stream: LiveStream) -> int | None:
        """Return the earliest instant that queries in the past have yet to evaluate over a stream. Return None if there
        is no such instant.
        """
        for group, until in list(self._untils.items()):
            if group not in self._backlog and all((cohort.next or until) > until for cohort in group.cohorts):
                del self._untils[group]
        nexts = [
            cohort.point if cohort.next is None else cohort.next
            for group in self._untils
            if stream in group.streams
            for cohort in group.cohorts
        ]
        return min((time for time in nexts if time is not None), default=None)

    # ---- checkpoints
    def save(self, group: Group) -> dict[str, Any] | None:
        """Return the state of a group for a checkpoint, as JSON. Return None if the group's query did not begin in the
        past.
        """
        if not group.incarnation:
            return None
        until = self._untils.get(group)
        return {"incarnation": group.incarnation, "begins_after": group.begins_after, "until": until}

    def restore(self, group: Group, saved: dict[str, Any]) -> None:
        """Restore a state that `save` has returned. The cohort of the group must be restored already."""
        self._incarnations = max(self._incarnations, group.incarnation)
        group.begins_after = saved["begins_after"]
        if saved["until"] is not None:
            self._resume(group, saved["until"])


def _always(stream: LiveStream) -> int:
    """Return the earliest possible beginning of a query that does not read the stored graph."""
    del stream
    return NEVER
