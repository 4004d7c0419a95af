"""Query groups: standing queries that differ only in constants share a plan (ADR 6).

A group consists of cohorts, and a cohort of members. A member is one registered query. The members of a cohort have the
same windows and instants, and are evaluated together, in one execution per instant. The three classes refer to each
other and are therefore in one module.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.engine.answers.block_log import BlockLog, Unpolled
from penstock.engine.answers.membership import Membership
from penstock.engine.answers.result_queue import ResultQueue
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, Planned, make_plan
from penstock.engine.windows.trigger import GridTrigger, grid_of
from penstock.engine.windows.window_contents import SlidingWindow, counted_windows, cuts, window_key
from penstock.errors import PenstockError
from penstock.event_time.gaps import MAX_GAPS, Gap
from penstock.query.ir import RelationToStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from weakref import ref

    from penstock.core import _native as native
    from penstock.engine.answers.answer_versions import AnswerVersion
    from penstock.engine.answers.delivery import Listeners
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.streams import LiveStream, Streams
    from penstock.engine.standing.last_run import LastRun
    from penstock.engine.windows.trigger import Trigger
    from penstock.engine.windows.window_contents import Window, WindowPool
    from penstock.query.ir import ContinuousQuery
    from penstock.query.prepared import BoundStanding
    from penstock.query.templates import Constant, Template

CohortKey: TypeAlias = int | tuple[int, int]
"""The key of a separate cohort: the registration point, or the registration point and `Cohort.after`."""

_log = logging.getLogger("penstock.engine")
_REPLAN_EVERY = 64  # number of executions between two checks whether the plan still fits the statistics


class Member:
    """A registered query. An engine can have very many members. `parameters`: the ids of the query's constants, in the
    order of the template's parameters. `point`: the registration point P in ms, or None until a stream of the group has
    progress. `listeners`: see `ResultQueue`. `handle`: a weak reference to the query's `Query` object, or None.
    """

    __slots__ = (
        "__weakref__",
        "_gaps",
        "base",
        "cohort",
        "group",
        "handle",
        "name",
        "parameters",
        "point",
        "result_queue",
        "text",
        "warnings",
    )

    def __init__(
        self,
        name: str,
        base: str | None,
        ir: ContinuousQuery | BoundStanding,
        group: Group,
        parameters: tuple[int, ...],
        listeners: Listeners,
    ) -> None:
        self.name = name
        self.base = base
        self.text = ir.text
        self.warnings = ir.warnings
        self.group = group
        self.parameters = parameters
        self.handle: ref[Any] | None = None
        self.result_queue = ResultQueue(self, listeners)
        self.point: int | None = None
        self._gaps: deque[Gap] | None = None
        self.cohort: Cohort | None = None

    def __repr__(self) -> str:
        return f"<Member {self.name}>"

    def become(self, base: str | None, ir: ContinuousQuery, group: Group, parameters: tuple[int, ...]) -> None:
        """Give another text to the member. The member must have left its cohort, and gets a new registration point."""
        self.base, self.text, self.warnings = base, ir.text, ir.warnings
        self.group, self.parameters, self.cohort, self.point = group, parameters, None, None

    @property
    def changes(self) -> bool:
        """Whether the query was registered with `changes`."""
        return self.group.query.changes

    @property
    def gaps(self) -> Sequence[Gap]:
        """The latest gaps."""
        return self._gaps or ()

    def skip(self, gaps: Iterable[Gap]) -> None:
        """Add gaps."""
        for gap in gaps:
            if self._gaps is None:
                self._gaps = deque(maxlen=MAX_GAPS)
            self._gaps.append(gap)

    def joins(self, cohort: Cohort) -> None:
        """Join a cohort, which evaluates the member from now on."""
        self.cohort = cohort
        self.result_queue.follow(cohort.log)


class Cohort:
    """Members that are evaluated together. `point`: the members' registration point P, or None until a stream of the
    group has progress. `start` sets the point, the trigger and the windows.

    `cut`: whether P cuts off the beginning of a window, because the window's range reaches back before P. A cohort is
    separate while P cuts one of its windows. Afterwards, the cohort joins the group's main cohort. The content of count
    windows, and of `[ALL]` without retention, always depends on P. Cohorts with such windows stay separate.

    `after`: the time in ms after which the members begin, if they have replaced other queries in a cluster. If `after`
    is None, the members begin after the registration point.
    """

    def __init__(self, group: Group, number: int) -> None:
        self.group, self.number = group, number
        self.after: int | None = None
        self.point: int | None = None
        self.cut = True
        self.trigger: Trigger | None = None
        self.windows: tuple[Window, ...] = ()
        self.log = BlockLog(group.unpolled)
        self.predecessor: AnswerVersion | None = None
        self.saved: AnswerVersion | None = None  # in a cluster: the answer in the last committed progress
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
    def key(self) -> CohortKey | None:
        """The key of this cohort among the separate cohorts of its group."""
        return self.point if self.after is None or self.point is None else (self.point, self.after)

    @property
    def first(self) -> Member:
        """The member that was added first."""
        return next(iter(self._all))

    @property
    def members(self) -> Membership:
        """The current members with their numbers."""
        if self._members is None:
            self._members = Membership(self._all)
        return self._members

    @property
    def next(self) -> int | None:
        """The next instant in ms, or None if it is unknown."""
        return None if self.trigger is None else self.trigger.next

    # ---- members
    def add(self, members: Iterable[Member]) -> None:
        """Add members. This cohort evaluates them from now on."""
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
        """Set the registration point, and with it the instants and windows. `last` is the last evaluated instant in ms,
        or None if there is none.
        """
        assert self.point is None, self
        self.point = point
        for member in self:
            if member.point is None:
                member.point = point
        group = self.group
        if group.grid is None:
            self.trigger, self.windows = counted_windows(group.query, group.by_iri, point)
            return
        windows = []
        for clause in group.query.windows:
            stream = group.by_iri[clause.stream]
            key = window_key(group.query, clause, group.grid, point, stream, group.incarnation)
            windows.append(pool.acquire(key, stream, group.grid))
        self.windows = tuple(windows)
        gaps = next((member.gaps for member in self), ())  # all members of a cohort have the same gaps
        self.trigger = GridTrigger(group.grid, point if last is None else last, gaps)

    def still_cut(self) -> bool:
        """Return whether P lies inside one of the windows of the next instant."""
        assert self.point is not None
        return self.cut and self.next is not None and cuts(self.windows, self.next, self.point)

    def uncut(self, pool: WindowPool) -> None:
        """Switch to windows that the group shares with others. Call when all windows begin at or after P."""
        self.cut = False
        self.windows = tuple(pool.uncut(w) if isinstance(w, SlidingWindow) else w for w in self.windows)

    def absorb(self, other: Cohort, pool: WindowPool) -> None:
        """Take over the members of another cohort, and dissolve that cohort. Both cohorts must have the same next
        instant and windows.
        """
        assert self.next == other.next, (self, other)
        self._adopt(other)
        if self.predecessor is not None and other.predecessor is not None:
            self.predecessor = self.predecessor.merged(other.predecessor, self.members)
        elif other.predecessor is not None:
            self.predecessor = other.predecessor
        other.dissolve(pool)

    def _adopt(self, other: Cohort) -> None:
        self.add(list(other))

    def dissolve(self, pool: WindowPool) -> None:
        """Release the windows and remove the members. The cohort is not evaluated any more."""
        self.dissolved = True
        for window in self.windows:
            if isinstance(window, SlidingWindow):
                pool.release(window)
        self.windows = ()
        self.trigger = self.predecessor = self.saved = self.last_run = None
        self._all.clear()
        self._members = None


class Group:
    """The queries with the same template and `max_catch_up` (None: the engine's limit). A group has a main cohort and
    separate cohorts (`apart`), one for each registration point that lies inside a window (see `Cohort.cut`).

    `query` is the resolved query without its constants. `publishes` is the derived stream of the group's only member,
    or None. Groups of the same `incarnation` have reached the same instants and can therefore share windows.
    """

    def __init__(
        self,
        template: Template,
        streams: Sequence[LiveStream],
        incarnation: int = 0,
        unpolled: Unpolled | None = None,
        max_catch_up: int | None = None,
    ) -> None:
        self.unpolled = unpolled if unpolled is not None else Unpolled()
        self.template = template
        self.max_catch_up = max_catch_up
        self.incarnation = incarnation
        self.query: ContinuousQuery = template.query
        self.streams = tuple(streams)
        self.by_iri = {stream.iri: stream for stream in streams}
        self.window_names = tuple(clause.name for clause in self.query.windows)
        self.variables = tuple(variable.name for variable in self.query.variables)
        self.grid = grid_of(self.query)
        # whether each answer is compared with the previous one
        self.compares = self.query.changes or self.query.r2s is not RelationToStream.RSTREAM
        self.publishes: LiveStream | None = None
        self.depth = 0
        self.begins_after: int | None = None  # ms; a query in the past begins after this time
        self.main: Cohort | None = None
        self.since_step = 0  # in a cluster: no instant of the group is due before this step
        self.apart: dict[CohortKey | None, Cohort] = {}
        self.plan: Planned | None = None
        self.sample: Sequence[Constant] = ()

    @property
    def cohorts(self) -> Iterator[Cohort]:
        """All cohorts with members."""
        if self.main is not None:
            yield self.main
        yield from self.apart.values()

    def names(self) -> list[str]:
        """Return the names of the members."""
        return [member.name for cohort in self.cohorts for member in cohort]

    def make_plan(
        self, core: EngineCore, streams: Streams, sample: Sequence[Constant], *, accepted: bool = False
    ) -> Planned:
        """Plan the template before any window exists. `sample` contains the constants of a member, for estimates.
        QueryError if there is no plan.
        """
        catalogue = EngineCatalogue(core, streams)
        self.plan = make_plan(self.template, catalogue, grouped=True, sample=sample, accepted=accepted)
        self.sample = sample
        return self.plan

    def current_plan(self, cohort: Cohort, core: EngineCore, streams: Streams, stored: native.Source) -> Planned:
        """Return the group's plan for an execution of `cohort`. The call replaces a plan that was made without
        statistics. In some executions, the call also checks the statistics. It replaces the plan if the statistics are
        outside the plan's range (ADR 6). It also replaces a plan with entailment if the schema has changed (ADR 93).
        QueryError if there is no plan for the new schema. `stored` is the view that the execution reads.
        """
        assert self.plan is not None
        executions = cohort.executions
        due = self.plan.blind or executions % _REPLAN_EVERY == 0 or executions & (executions - 1) == 0
        if due or self.query.entailed:
            catalogue = EngineCatalogue(core, streams, [window.made for window in cohort.windows], stored)
            if not self.plan.physical.entails(catalogue):
                self.plan = make_plan(self.template, catalogue, grouped=True, sample=self.sample, accepted=True)
            elif due and (self.plan.blind or self.plan.physical.replan_needed(catalogue)):
                self._replan(catalogue, self.sample)
        return self.plan

    def plan_now(self, cohort: Cohort, core: EngineCore, streams: Streams) -> Planned:
        """Return a plan for the current statistics. The call does not change the group's plan."""
        catalogue = EngineCatalogue(core, streams, [window.made for window in cohort.windows])
        return make_plan(self.template, catalogue, grouped=True, sample=self.sample, accepted=True)

    def _replan(self, catalogue: EngineCatalogue, sample: Sequence[Constant]) -> None:
        try:
            self.plan = make_plan(self.template, catalogue, grouped=True, sample=sample, accepted=True)
        except PenstockError:
            _log.exception("replanning failed; the query keeps its plan")

    # ---- members
    def new_cohort(self, number: int) -> Cohort:
        """Return a new cohort of the group, without members."""
        return Cohort(self, number)

    def cohort_for(self, point: int | None, number: int, pool: WindowPool) -> Cohort:
        """Return the cohort of the queries with this registration point. `point`: a time in ms, or None if the streams
        have no progress yet. If the cohort does not exist, the call creates it with the number `number`.
        """
        cohort = self.apart.get(point)
        if cohort is None:
            cohort = self.apart[point] = self.new_cohort(number)
            if point is not None:
                cohort.start(point, pool)
        return cohort

    def begin(self, point: int, pool: WindowPool) -> None:
        """Set the registration point of the waiting cohort. A cohort with this point absorbs the waiting cohort."""
        (cohort := self.apart.pop(None)).start(point, pool)
        if (other := self.apart.setdefault(point, cohort)) is not cohort:
            other.absorb(cohort, pool)

    def settle(self, pool: WindowPool) -> None:
        """Merge each separate cohort whose registration point lies inside no window any more. The cohort joins the main
        cohort once both have the same next instant. If there is no main cohort, this cohort becomes the main one.
        """
        for point, cohort in list(self.apart.items()):
            if point is None or cohort.next is None or cohort.still_cut():
                continue
            if self.main is None:
                self.main = cohort
            elif self.main.next != cohort.next:
                continue
            del self.apart[point]
            cohort.uncut(pool)
            if cohort is not self.main:
                self.main.absorb(cohort, pool)

    def leave(self, member: Member, pool: WindowPool) -> None:
        """Remove a member. If the member's cohort has no other members, the call also removes the cohort."""
        cohort = member.cohort
        assert cohort is not None
        cohort.remove(member)
        if len(cohort):
            return
        cohort.dissolve(pool)
        if cohort is self.main:
            self.main = None
        else:
            del self.apart[cohort.key]

    def end(self) -> LiveStream | None:
        """Release the group's streams and plan, because a user's reference to a stopped `Query` can retain the group.
        Returns the stream that the group has published, or None.
        """
        published, self.publishes, self.plan = self.publishes, None, None
        self.streams, self.by_iri = (), {}
        return published
