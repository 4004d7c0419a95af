"""Cohorts: members of a group that are evaluated together, because they have the same windows and instants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.answers.membership import Membership
from penstock.engine.answers.result_blocks import BlockLog
from penstock.engine.windows.trigger import GridTrigger
from penstock.engine.windows.window_contents import SlidingWindow, counted_windows, cuts, window_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.engine.standing.groups import Group
    from penstock.engine.standing.last_run import LastRun
    from penstock.engine.standing.member import Member
    from penstock.engine.standing.stream_operator import Predecessor
    from penstock.engine.windows.trigger import Trigger
    from penstock.engine.windows.window_contents import Window, WindowPool


class Cohort:
    """A cohort. `point` is P, None until a stream of the group has progress; `start` then sets trigger and windows.

    `cut`: P still cuts a window. Such a cohort is separate and joins the group's main cohort when it is no longer cut
    (count windows, and [ALL] without retention, depend on P permanently).
    """

    def __init__(self, group: Group, number: int) -> None:
        self.group = group
        self.number = number
        self.point: int | None = None
        self.cut = True
        self.trigger: Trigger | None = None
        self.windows: tuple[Window, ...] = ()
        self.log = BlockLog(group.unpolled)
        self.predecessor: Predecessor | None = None
        self.executions = 0
        self.last_run: LastRun | None = None
        self.dissolved = False
        self._all: dict[Member, None] = {}
        self._members: Membership | None = None

    def __repr__(self) -> str:
        return f"<Cohort {self.number}: {len(self)} members, P={self.point}, next={self.next}>"

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._all)

    @property
    def first(self) -> Member:
        """The oldest member."""
        return next(iter(self._all))

    @property
    def members(self) -> Membership:
        """The current members with their numbers."""
        if self._members is None:
            self._members = Membership(self._all)
        return self._members

    @property
    def next(self) -> int | None:
        """The next instant, if known."""
        return None if self.trigger is None else self.trigger.next

    # ---- members
    def add(self, members: Iterable[Member]) -> None:
        """Add members, which are evaluated here from now on."""
        for member in members:
            self._all[member] = None
            member.joins(self)
        self._members = None

    def remove(self, member: Member) -> None:
        """Remove a member."""
        del self._all[member]
        self._members = None

    # ---- time
    def start(self, point: int, pool: WindowPool, last: int | None = None) -> None:
        """Set the registration point, and with it instants and windows. `last`: the last evaluated instant."""
        assert self.point is None, self
        self.point = point
        for member in self._all:
            if member.point is None:
                member.point = point
        group = self.group
        if group.grid is None:
            self.trigger, self.windows = counted_windows(group.query, group.by_iri, point)
            return
        windows = []
        for clause in group.query.windows:
            stream = group.by_iri[clause.stream]
            retention = stream.declaration.retention_ms if stream.declaration.timing else 0
            windows.append(
                pool.acquire(
                    window_key(group.query, clause, group.grid, point, retention, group.incarnation), stream, group.grid
                )
            )
        self.windows = tuple(windows)
        gaps = next((member.gaps for member in self._all), ())  # members that are evaluated together have the same gaps
        self.trigger = GridTrigger(group.grid, point if last is None else last, gaps)

    def still_cut(self) -> bool:
        """Return whether P cuts a window at the next instant."""
        assert self.point is not None
        return self.cut and self.next is not None and cuts(self.windows, self.next, self.point)

    def uncut(self, pool: WindowPool) -> None:
        """Switch to the shared windows, once P no longer cuts any of them."""
        self.cut = False
        self.windows = tuple(pool.uncut(w) if isinstance(w, SlidingWindow) else w for w in self.windows)

    def absorb(self, other: Cohort, pool: WindowPool) -> None:
        """Take over the members of a cohort with the same next instant and windows."""
        assert self.next == other.next, (self, other)
        self.add(list(other))
        if self.predecessor is not None and other.predecessor is not None:
            self.predecessor = self.predecessor.merged(other.predecessor, self.members)
        elif other.predecessor is not None:
            self.predecessor = other.predecessor
        other.dissolve(pool)

    def dissolve(self, pool: WindowPool) -> None:
        """Release the windows. The cohort is not evaluated any more."""
        self.dissolved = True
        for window in self.windows:
            if isinstance(window, SlidingWindow):
                pool.release(window)
        self.windows = ()
        self.trigger = self.predecessor = self.last_run = None
        self._all.clear()
        self._members = None
