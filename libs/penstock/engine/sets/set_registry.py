"""The part of the registry that concerns query sets: it registers the sets and their members."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from penstock.engine.oneshot.engine_catalogue import EngineCatalogue
from penstock.engine.sets.set_groups import SetCohort, SetGroup
from penstock.engine.sets.set_member import SetMember, checked_key, with_report
from penstock.engine.standing.derived_streams import set_depths
from penstock.query.budget import planning
from penstock.query.resolve import as_query, resolve
from penstock.query.set_templates import set_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.core._native import Ids
    from penstock.engine.answers.delivery import Listeners
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.streams import LiveStream, Streams
    from penstock.engine.sets.set_members import MemberColumns
    from penstock.engine.standing.groups import Cohort, Group, Member
    from penstock.engine.windows.schedule import Schedule
    from penstock.engine.windows.window_contents import WindowPool
    from penstock.query.ir import ContinuousQuery, Statement
    from penstock.query.templates import Template


class SetRegistry(ABC):
    """The query sets of a registry. `Registry` is a subclass, which sets the attributes."""

    _core: EngineCore
    _streams: Streams
    _schedule: Schedule
    _groups: dict[tuple[int, int | None, Template], Group]
    _cohorts: Iterator[int]
    incarnation: int
    waiting: dict[Group, None]
    members: dict[str, Member]
    listeners: Listeners
    pool: WindowPool

    @abstractmethod
    def checked(self, statement: Statement, *, declares: bool = False, replaces: bool = False) -> ContinuousQuery:
        """Return the query of a statement (see `Registry.checked`)."""

    @abstractmethod
    def _name(self, ir: ContinuousQuery, name: str | None) -> str: ...

    @abstractmethod
    def _place(self, cohort: Cohort, point: int | None, last: int | None, *, main: bool) -> None: ...

    @staticmethod
    @abstractmethod
    def registration_point(streams: Iterable[LiveStream]) -> int | None:
        """Return the registration point P in ms (see `Registry.registration_point`)."""

    # ---- query sets
    def register_set(
        self,
        statement: Statement,
        name: str | None,
        base: str | None,
        key: Sequence[str] | None,
        *,
        report: str,
        max_catch_up: int | None = None,
        stands: bool = False,
    ) -> SetMember:
        """Add a query set without members. Returns the query set. `key` contains the names of the columns that identify
        a member; None stands for the parameters. `max_catch_up`, `stands`: see `Registry.register`. QueryError or
        DataError if the set is invalid, LimitError if there are too many queries. After an error, no set was added.
        """
        if stands:
            assert name is not None
            assert key is not None
            return self.restore_set(as_query(statement), name, base, key, report=report, max_catch_up=max_catch_up)
        with planning(self._core.limits, statement.text):
            ir = self.checked(statement, declares=True)
            member = self._enrol_set(with_report(ir, report), self._name(ir, name), base, key, max_catch_up)
            self.members[member.name] = member
            return member

    def restore_set(
        self,
        ir: ContinuousQuery,
        name: str,
        base: str | None,
        key: Sequence[str],
        *,
        report: str,
        max_catch_up: int | None = None,
    ) -> SetMember:
        """Add a query set that was registered before. The members of the set are not added."""
        with planning(self._core.limits, ir.text, accepted=True):
            member = self._enrol_set(with_report(ir, report), name, base, key, max_catch_up, restored=True)
            self.members[name] = member
            return member

    def _enrol_set(
        self,
        ir: ContinuousQuery,
        name: str,
        base: str | None,
        key: Sequence[str] | None,
        max_catch_up: int | None,
        *,
        restored: bool = False,
    ) -> SetMember:
        resolved = resolve(ir, EngineCatalogue(self._core, self._streams), stands=restored)
        template = set_template(resolved, name)
        read = [self._streams.get(iri) for iri in dict.fromkeys(clause.stream for clause in resolved.windows)]
        group = SetGroup(template, read, self.incarnation, self._schedule.unpolled, max_catch_up)
        keys = checked_key(template, key)
        group.make_plan(self._core, self._streams, (), accepted=restored)
        member = group.owner = SetMember(name, base, ir, group, keys, self.listeners, self._core.dictionary)
        self._groups[self.incarnation, max_catch_up, template.template] = group
        self._schedule.add(group)
        set_depths(group, self._schedule.readers)
        return member

    def extend(self, member: SetMember, columns: MemberColumns, not_before: int | None = None) -> int | None:
        """Add members to a query set. The members get the current registration point (see `registration_point`), or the
        time `not_before` if this time is later. Returns the registration point of the new members.
        """
        group = member.set_group
        if not member.constants:  # the first members: now there is a sample for the plan
            member.constants = member.constants_of(columns)
            group.make_plan(self._core, self._streams, member.constants, accepted=True)
        point = max((p for p in (self.registration_point(group.streams), not_before) if p is not None), default=None)
        group.cohort_of(point, next(self._cohorts), self.pool).extend(columns)
        if point is None:
            self.waiting[group] = None
        group.settle(self.pool)
        return point

    def rejoin(self, member: SetMember, columns: MemberColumns, point: int | None, last: int | None) -> Cohort:
        """Add earlier members of a query set again, as a separate cohort with the registration point `point`. `last` is
        the last evaluated instant of this cohort, in ms. The caller must then call `settle` of the group.
        """
        if not member.constants:
            member.constants = member.constants_of(columns)
            member.set_group.make_plan(self._core, self._streams, member.constants, accepted=True)
        cohort = member.set_group.new_cohort(next(self._cohorts))
        cohort.extend(columns)
        member.index.put(columns.keys, columns.numbers)
        self._place(cohort, point, last, main=False)
        return cohort

    def shrink(self, member: SetMember, numbers: Ids) -> None:
        """Remove members of a query set."""
        if len(numbers):
            member.set_group.drop(numbers, self.pool)
            if None not in member.set_group.apart:
                self.waiting.pop(member.set_group, None)

    def restore_set_cohort(
        self, member: SetMember, columns: MemberColumns, point: int | None, last: int | None, *, main: bool
    ) -> Cohort:
        """Create a cohort of a query set that `restore_set` has added (see `restore_cohort`)."""
        cohort = SetCohort(member.set_group, next(self._cohorts))
        cohort.extend(columns)
        member.restore(columns)
        self._place(cohort, point, last, main=main)
        return cohort
