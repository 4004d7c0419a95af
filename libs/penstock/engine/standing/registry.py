"""The registry of standing queries: registration, removal, and the arrangement of queries in groups and cohorts."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from penstock.engine.answers.delivery import Listeners
from penstock.engine.answers.engine_queue import EngineQueue
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue
from penstock.engine.sets.set_registry import SetRegistry
from penstock.engine.standing.derived_streams import check_publication, publish_stream, set_depths
from penstock.engine.standing.groups import Cohort, Group, Member
from penstock.engine.standing.stream_operator import with_changes
from penstock.engine.windows.window_contents import WindowPool
from penstock.errors import LimitError
from penstock.query.budget import planning
from penstock.query.resolve import as_query, error_at, resolve
from penstock.query.templates import parametrise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.engine.engine_core import EngineCore
    from penstock.engine.history.past_queries import History
    from penstock.engine.intake.streams import LiveStream, Streams
    from penstock.engine.windows.schedule import Schedule
    from penstock.query.ir import ContinuousQuery, Statement
    from penstock.query.templates import Constant, Template


class Registry(SetRegistry):
    """The standing queries by name, their groups, and the windows that groups share."""

    def __init__(self, core: EngineCore, streams: Streams, schedule: Schedule, history: History | None = None) -> None:
        self._core = core
        self._streams = streams
        self._schedule = schedule
        self._history = history
        self.readers = schedule.readers
        self._groups: dict[tuple[int, int | None, Template], Group] = {}  # by incarnation, `max_catch_up` and template
        self.incarnation = 0  # of new groups; groups of different incarnations share neither plans nor windows
        self._cohorts = count()
        self._names = count(1)
        self.waiting: dict[Group, None] = {}  # groups with a cohort that has no registration point yet
        self.members: dict[str, Member] = schedule.members
        self.listeners = Listeners()
        self.results = EngineQueue(schedule.unpolled, self.listeners)
        self.pool = WindowPool()

    @property
    def groups(self) -> Iterable[Group]:
        """All groups."""
        return self._groups.values()

    def group_of(self, template: Template) -> Group | None:
        """Return the group of a template, or None if there is none. Groups of an earlier incarnation of the
        engine, and groups with a `max_catch_up` of their own, are not considered.
        """
        return self._groups.get((self.incarnation, None, template))

    @property
    def cohorts(self) -> Iterator[Cohort]:
        """All cohorts of all groups."""
        for group in self._groups.values():
            yield from group.cohorts

    # ---- registration
    def register(
        self,
        statement: Statement,
        name: str | None,
        base: str | None,
        max_catch_up: int | None = None,
        *,
        changes: bool = False,
        stands: bool = False,
    ) -> Member:
        """Add a standing query. Returns the query as a member. QueryError if the query is invalid, LimitError if there
        are too many queries. After an error, no query was added.

        `changes`: whether each evaluation reports the rows that were added and removed since the previous evaluation.
        `stands`: whether the query is registered already and is only restored here. Such a query is not checked as a
        new query. `max_catch_up` is the query's own limit, or None for the limit of the engine. Queries with different
        limits skip different instants, so they are in different groups.
        """
        with planning(self._core.limits, statement.text, accepted=stands):
            checked = self.checked(statement)
            query = with_changes(checked) if changes else checked
            return self._register(query, name, base, max_catch_up, stands=stands)

    def _register(
        self, ir: ContinuousQuery, name: str | None, base: str | None, max_catch_up: int | None, *, stands: bool
    ) -> Member:
        name = self._name(ir, name)
        member = self._enrol(ir, name, base, max_catch_up, stands=stands)
        if self._history is not None and member.group.incarnation > self.incarnation:
            self._begin_in_past(member, self._history)
            return member
        self.begin_now(member)
        return member

    def _begin_in_past(self, member: Member, history: History) -> None:
        group, beginning = member.group, history.beginning_of(member.group)
        self.begin_after(member, beginning.point, beginning.after)
        group.begins_after = beginning.after
        history.begin(group)

    def begin_after(self, member: Member, point: int, after: int) -> None:
        """Let a member begin with the registration point `point`. The member's first instant is the first instant of
        the group that is later than `after`.
        """
        group, member.point = member.group, point
        cohort = group.apart.get(point)
        if cohort is None:
            cohort = group.apart[point] = group.new_cohort(next(self._cohorts))
            cohort.add([member])
            cohort.start(point, self.pool, after)
        else:
            cohort.add([member])
        group.settle(self.pool)

    def begin_now(self, member: Member) -> None:
        """Let a member begin at the current registration point."""
        point = self.registration_point(member.group.streams)
        cohort = member.group.cohort_for(point, next(self._cohorts), self.pool)
        member.point = point
        cohort.add([member])
        if point is None:
            self.waiting[member.group] = None
        member.group.settle(self.pool)

    def checked(self, statement: Statement, *, declares: bool = False, replaces: bool = False) -> ContinuousQuery:
        """Return the standing query of a statement. QueryError if the statement is not a standing query, LimitError if
        there are too many queries. `declares`: whether the statement declares a query set. `replaces`: whether the
        statement replaces another text.
        """
        query = as_query(statement)
        if query.from_beginning and declares:
            message = "FROM BEGINNING is not available in a query set: its members begin when they are added"
            raise error_at(query, query.at, message, "FROM BEGINNING")
        if query.parameters and not declares:
            message = "a text with parameters is a query set: use Engine.register_set"
            raise error_at(query, query.parameters[0].at, message)
        if not query.windows:
            message = "a standing query needs a window over a stream; use Engine.query for a query without one"
            raise error_at(query, query.at, message)
        if len(self.members) >= self._core.limits.max_queries and not replaces:
            raise LimitError(f"there are already {len(self.members)} standing queries (max_queries)")
        return query

    def _name(self, ir: ContinuousQuery, name: str | None) -> str:
        name = name or ir.name or self.free_name()
        if name in self.members:
            raise error_at(ir, ir.name_at, f"there is already a query named {name}", "" if name == ir.name else name)
        return name

    def free_name(self) -> str:
        """Return a name that no query has."""
        return next(made for n in self._names if (made := f"q{n}") not in self.members)

    def restore(
        self,
        ir: ContinuousQuery,
        name: str,
        base: str | None,
        max_catch_up: int | None = None,
        incarnation: int | None = None,
    ) -> Member:
        """Add a previously registered query to its group, but not to a cohort yet. If the query publishes a stream, the
        stream must exist already. `incarnation` is the incarnation of the group, or None for the current one.
        """
        with planning(self._core.limits, ir.text, accepted=True):
            return self._enrol(ir, name, base, max_catch_up, incarnation, restored=True)

    def restore_cohort(
        self,
        members: Sequence[Member],
        point: int | None,
        last: int | None,
        *,
        main: bool = False,
        after: int | None = None,
    ) -> Cohort:
        """Create a cohort for members of one group that `restore` has added. `point` and `last` are the registration
        point and the last evaluated instant of the cohort, in ms. `main`: whether the new cohort is the group's main
        cohort. `after`: see `Cohort`.
        """
        group = members[0].group
        cohort = Cohort(group, next(self._cohorts))
        cohort.after = after
        cohort.add(members)
        self._place(cohort, point, last, main=main)
        return cohort

    def _place(self, cohort: Cohort, point: int | None, last: int | None, *, main: bool) -> None:
        group = cohort.group
        if point is not None:
            cohort.start(point, self.pool, last)
        else:
            self.waiting[group] = None
        if main:
            group.main = cohort
            cohort.uncut(self.pool)
        else:
            group.apart[cohort.key] = cohort

    def _enrol(
        self,
        ir: ContinuousQuery,
        name: str,
        base: str | None,
        max_catch_up: int | None,
        incarnation: int | None = None,
        *,
        restored: bool = False,
        stands: bool = False,
    ) -> Member:
        resolved = resolve(ir, EngineCatalogue(self._core, self._streams), stands=restored or stands)
        if resolved.publishes and not restored:
            check_publication(resolved, self._streams, self.groups)
        template, constants = parametrise(resolved)
        in_past = None if restored or self._history is None else self._history.incarnation_for(resolved)
        chosen = in_past or incarnation or self.incarnation
        group = self.group_for(template, constants, chosen, max_catch_up, accepted=restored or stands)
        if in_past is not None and self._history is not None:
            self._history.beginning_of(group)  # raises an error before anything changes
        parameters = tuple(self._core.term_id(constant) for constant in constants)
        if resolved.publishes and group.publishes is None:
            assert resolved.name is not None
            made = self._streams.get(resolved.name) if restored else publish_stream(resolved, name, self._streams)
            group.publishes = made
        self.add(group)
        member = self.members[name] = Member(name, base, ir, group, parameters, self.listeners)
        return member

    def group_for(
        self,
        template: Template,
        constants: Sequence[Constant],
        incarnation: int,
        max_catch_up: int | None,
        *,
        accepted: bool = False,
    ) -> Group:
        """Return the group of a template. The group can be new. A new group is in the registry only after a call of
        `add`. `constants` are the constants of the first member. `accepted`: whether the query is registered already.
        """
        group = self._groups.get((incarnation, max_catch_up, template))
        if group is None:
            read = [self._streams.get(iri) for iri in dict.fromkeys(clause.stream for clause in template.query.windows)]
            group = Group(template, read, incarnation, self._schedule.unpolled, max_catch_up)
            group.make_plan(self._core, self._streams, constants, accepted=accepted)
        return group

    def add(self, group: Group) -> None:
        """Add a group, unless it was added before."""
        key = group.incarnation, group.max_catch_up, group.template
        if key not in self._groups:
            self._groups[key] = group
            self._schedule.add(group)
            set_depths(group, self._schedule.readers)

    @staticmethod
    def registration_point(streams: Iterable[LiveStream]) -> int | None:
        """Return the registration point P in ms. P is the latest end of a closed batch in any of the streams. The
        result is None if no stream has closed a batch (semantics.md §3).
        """
        return max((s.closed_ms for s in streams if s.closed_ms is not None), default=None)

    def begin(self, stream: LiveStream, point: int) -> None:
        """Set the registration point of waiting queries that read `stream`. A query waits until one of the query's
        streams has its first progress.
        """
        self._streams.begin(stream, point)
        if not self.waiting:
            return
        for group in [group for group in self.waiting if stream.iri in group.by_iri]:
            del self.waiting[group]
            group.begin(point, self.pool)
            group.settle(self.pool)

    # ---- removal
    def remove(self, member: Member) -> LiveStream | None:
        """Remove a query. If the query has published a stream, the stream ends, and the call returns this stream.
        Otherwise, the call returns None.
        """
        self.leave(member)
        del self.members[member.name]
        return self.drop_if_empty(member.group)

    def leave(self, member: Member) -> None:
        """Remove a member from its cohort. If the group then has no members, the caller must call `drop_if_empty`."""
        group = member.group
        group.leave(member, self.pool)
        if None not in group.apart:
            self.waiting.pop(group, None)

    def drop_if_empty(self, group: Group) -> LiveStream | None:
        """Remove a group that has no members. Returns the stream that the group has published, or None."""
        if any(True for _ in group.cohorts):
            return None
        self._schedule.remove(group)
        if self._history is not None:
            self._history.remove(group)
        del self._groups[group.incarnation, group.max_catch_up, group.template]
        published = group.end()
        if published is not None:
            published.ended = True
        return published
