"""Query groups: standing queries that differ only in constants share one plan and one execution per instant (ADR 6)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.engine.answers.unpolled import Unpolled
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, Planned, make_plan
from penstock.engine.standing.cohorts import Cohort
from penstock.engine.windows.trigger import grid_of
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.core import _native as native
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.streams import LiveStream, Streams
    from penstock.engine.standing.member import Member
    from penstock.engine.windows.window_contents import WindowPool
    from penstock.query.ir import ContinuousQuery
    from penstock.query.templates import Constant, Template

_log = logging.getLogger("penstock.engine")
_REPLAN_EVERY = 64  # executions between checks of the statistics against the plan


class Group:
    """Members of one template, in cohorts: the main one, and one for each registration point that still cuts a window.

    `query` is the resolved query without its constants. `publishes` is the stream that the group's only member feeds.
    Groups of one `incarnation` have come to the same instants, so they may share windows.
    """

    def __init__(
        self, template: Template, streams: Sequence[LiveStream], incarnation: int = 0, unpolled: Unpolled | None = None
    ) -> None:
        self.unpolled = unpolled if unpolled is not None else Unpolled()
        self.template = template
        self.incarnation = incarnation
        self.query: ContinuousQuery = template.query
        self.streams = tuple(streams)
        self.by_iri = {stream.iri: stream for stream in streams}
        self.window_names = tuple(clause.name for clause in self.query.windows)
        self.variables = tuple(variable.name for variable in self.query.variables)
        self.grid = grid_of(self.query)
        self.publishes: LiveStream | None = None
        self.depth = 0
        self.main: Cohort | None = None
        self.apart: dict[int | None, Cohort] = {}
        self.plan: Planned | None = None

    @property
    def cohorts(self) -> Iterator[Cohort]:
        """All cohorts with members."""
        if self.main is not None:
            yield self.main
        yield from self.apart.values()

    def make_plan(
        self, core: EngineCore, streams: Streams, sample: Sequence[Constant], *, accepted: bool = False
    ) -> Planned:
        """Plan the template before any window exists. QueryError if there is no plan."""
        catalogue = EngineCatalogue(core, streams)
        self.plan = make_plan(self.template, catalogue, grouped=True, sample=sample, accepted=accepted)
        return self.plan

    def current_plan(self, cohort: Cohort, core: EngineCore, streams: Streams, stored: native.Source) -> Planned:
        """Return the plan. Replans if the statistics have left the range of the plan (ADR 6), or there were none.
        `stored`: the view about to be read.
        """
        assert self.plan is not None
        executions = cohort.executions
        if self.plan.blind or executions % _REPLAN_EVERY == 0 or executions & (executions - 1) == 0:
            catalogue = EngineCatalogue(core, streams, [window.made for window in cohort.windows], stored)
            if self.plan.blind or self.plan.physical.replan_needed(catalogue):
                self._replan(catalogue, cohort.first.constants)
        return self.plan

    def plan_now(self, cohort: Cohort, core: EngineCore, streams: Streams) -> Planned:
        """Return the plan that the current counts ask for; the group's own stays."""
        catalogue = EngineCatalogue(core, streams, [window.made for window in cohort.windows])
        return make_plan(self.template, catalogue, grouped=True, sample=cohort.first.constants, accepted=True)

    def _replan(self, catalogue: EngineCatalogue, sample: Sequence[Constant]) -> None:
        try:
            self.plan = make_plan(self.template, catalogue, grouped=True, sample=sample, accepted=True)
        except PenstockError:
            _log.exception("replanning failed; the query keeps its plan")

    # ---- members
    def cohort_for(self, point: int | None, number: int, pool: WindowPool) -> Cohort:
        """Return the cohort for a registration point (None = no progress yet). A new one gets the given number."""
        cohort = self.apart.get(point)
        if cohort is None:
            cohort = self.apart[point] = Cohort(self, number)
            if point is not None:
                cohort.start(point, pool)
        return cohort

    def begin(self, point: int, pool: WindowPool) -> None:
        """Set the registration point of the cohort that waited for the first progress."""
        cohort = self.apart[point] = self.apart.pop(None)
        cohort.start(point, pool)

    def settle(self, pool: WindowPool) -> None:
        """Merge cohorts whose registration point no longer cuts a window into the main one."""
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
        """Remove a member, and its cohort if that is then empty."""
        cohort = member.cohort
        assert cohort is not None
        cohort.remove(member)
        if len(cohort):
            return
        cohort.dissolve(pool)
        if cohort is self.main:
            self.main = None
        else:
            del self.apart[cohort.point]

    def end(self) -> LiveStream | None:
        """Release streams and plan, because users may retain stopped queries for long. Returns the published stream."""
        published, self.publishes, self.plan = self.publishes, None, None
        self.streams, self.by_iri = (), {}
        return published
