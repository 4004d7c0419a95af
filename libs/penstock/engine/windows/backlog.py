"""The backlog: the groups with more due instants than one pass evaluates. The groups in the backlog are evaluated in
turns (docs/adr/0057).

Groups over the same streams share windows. All groups over the same streams therefore form a lane. The groups of a lane
advance together, in order of time. Each turn evaluates instants of one lane. The next turn evaluates instants of the
next lane.

A turn ends between two instants of its lane. At that point, all cohorts of a group have evaluated the same instants, so
that the progress of the group can be committed.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.groups import Cohort, Group

Lane: TypeAlias = tuple[int, frozenset["LiveStream"]]
_Entry: TypeAlias = tuple[int, int, int, "Cohort"]


class Backlog:
    """The groups in the backlog. `at_once` is the maximum number of due instants of a cohort that one pass evaluates.
    If a cohort has more due instants, the cohort's group goes into the backlog. If `at_once` is None, a pass evaluates
    all due instants, and the backlog stays empty.

    `reach` returns a time in ms, or None. The instants of a group at or before this time are due.
    """

    def __init__(self, reach: Callable[[Group], int | None], at_once: int | None = None) -> None:
        self.at_once = at_once
        self._reach = reach
        self._lanes: dict[Lane, dict[Group, None]] = {}  # in the order of their turns
        self._groups: dict[Group, Lane] = {}
        self._open: Lane | None = None  # the lane whose last turn an error ended in the middle of an instant

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __contains__(self, group: Group) -> bool:
        return group in self._groups

    @property
    def settled(self) -> bool:
        """Whether no lane is in the middle of an instant. If so, all cohorts of each group have evaluated the same
        instants.
        """
        return self._open is None

    def consider(self, group: Group, until: int) -> None:
        """Add a group if one of its cohorts has more than `at_once` instants that are due at or before `until` (ms)."""
        most = self.at_once
        if most is None or group in self._groups:
            return
        if any(cohort.trigger is not None and cohort.trigger.exceeds(most, until) for cohort in group.cohorts):
            self.add(group)

    def add(self, group: Group) -> None:
        """Add a group. The group must not be in the backlog."""
        lane = group.incarnation, frozenset(group.streams)
        self._lanes.setdefault(lane, {})[group] = None
        self._groups[group] = lane

    def groups(self) -> list[Group]:
        """Return all groups in the backlog."""
        return list(self._groups)

    def remove(self, group: Group) -> None:
        """Remove a group. The call has no effect if the group is not in the backlog."""
        lane = self._groups.pop(group, None)
        if lane is None:
            return
        del self._lanes[lane][group]
        if not self._lanes[lane]:
            del self._lanes[lane]
            if self._open == lane:
                self._open = None

    def turn(self, fire: Callable[[Cohort], None], stop: Callable[[], bool]) -> None:
        """Evaluate instants of one lane. The turn ends when `stop` returns True, or when no instant of the lane is due.
        `fire` evaluates a cohort. The next call evaluates the next lane.

        After an error, the next call continues with the same lane and instant.
        """
        lane = self._open or next(iter(self._lanes))
        self._run(lane, fire, stop)
        if lane in self._lanes:
            self._lanes[lane] = self._lanes.pop(lane)

    def finish(self, group: Group, fire: Callable[[Cohort], None], stop: Callable[[], bool]) -> bool:
        """Evaluate the due instants of a group's lane. The call ends when `stop` returns True, or when no instant of
        the lane is due. Returns whether the group has left the backlog.
        """
        lane = self._groups.get(group)
        if lane is not None:
            self._run(lane, fire, stop)
        return group not in self._groups

    def _run(self, lane: Lane, fire: Callable[[Cohort], None], stop: Callable[[], bool]) -> None:
        queue = list(self._due(lane))
        heapify(queue)
        time: int | None = None
        while queue:
            entry = heappop(queue)
            if entry[0] != time:
                self._open = None
                if time is not None and stop():
                    return
                time = entry[0]
            cohort = entry[3]
            if cohort.dissolved or cohort.next != entry[0]:
                continue  # the cohort was merged into another one
            self._open = lane
            group = cohort.group
            fire(cohort)
            if (following := self._entry(group, cohort)) is not None:
                heappush(queue, following)
        self._open = None
        for group in list(self._lanes.get(lane, ())):
            self.remove(group)

    def _due(self, lane: Lane) -> Iterator[_Entry]:
        for group in self._lanes[lane]:
            for cohort in group.cohorts:
                if (entry := self._entry(group, cohort)) is not None:
                    yield entry

    def _entry(self, group: Group, cohort: Cohort) -> _Entry | None:
        """Return the queue entry of a cohort's next instant, or None if this instant is not due."""
        time, until = cohort.next, self._reach(group)
        return None if time is None or until is None or time > until else (time, group.depth, cohort.number, cohort)
