"""Replacement of a standing query's text. From some instant on, the new text answers under the same name (ADR 95)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.answers.answer_versions import AnswerVersion
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue
from penstock.engine.sets.set_member import SetMember
from penstock.engine.standing.handover import check_due, check_replacement, hand_over_member, may_join
from penstock.engine.standing.stream_operator import with_changes
from penstock.errors import UnavailableError
from penstock.query.budget import planning
from penstock.query.resolve import as_query, error_at, resolve
from penstock.query.templates import parametrise

if TYPE_CHECKING:
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.history.past_queries import History
    from penstock.engine.intake.streams import LiveStream, Streams
    from penstock.engine.standing.groups import Member
    from penstock.engine.standing.registry import Registry
    from penstock.engine.windows.schedule import Schedule
    from penstock.query.ir import ContinuousQuery, Statement


class Replacements:
    """The replacements of an embedded engine. All access must be under the engine's lock."""

    def __init__(
        self, core: EngineCore, streams: Streams, schedule: Schedule, registry: Registry, history: History
    ) -> None:
        self._core, self._streams, self._schedule = core, streams, schedule
        self._registry, self._history = registry, history

    def replaced(self, statement: Statement, name: str | None) -> Member | None:
        """Return the query that a text would replace. Return None if no query has the text's name. QueryError if a
        query set has this name.
        """
        ir = as_query(statement)
        name = name or ir.name
        member = self._registry.members.get(name or "")
        if isinstance(member, SetMember):
            message = f"{name} is a query set, which no text replaces: stop it first"
            raise error_at(ir, ir.name_at, message, "" if name == ir.name else member.name)
        return member

    def replace(
        self, member: Member, statement: Statement, base: str | None, *, changes: bool = False
    ) -> tuple[LiveStream, ...]:
        """Let another text answer under the name of a query, from the next instant on (`hand_over`). The member and its
        result queue stay, with all pending evaluations. Returns the streams of the new text, because some instants of
        the new text can be due already. `base`, `changes`: see `Registry.register`.

        QueryError if the text is invalid or asks for the past, or if one of the two texts publishes a stream.
        LimitError if too many instants would become due. UnavailableError if the query began in the past and has not
        caught up yet. After an error, the earlier text remains.
        """
        if self._history.is_behind(member.group):
            raise UnavailableError(
                f"query {member.name} has not caught up with its past yet: poll it, and replace it then"
            )
        with planning(self._core.limits, statement.text):
            checked = self._registry.checked(statement, replaces=True)
            self._replace(member, with_changes(checked) if changes else checked, base)
        return member.group.streams

    def _replace(self, member: Member, ir: ContinuousQuery, base: str | None) -> None:
        registry, earlier = self._registry, member.group
        resolved = resolve(ir, EngineCatalogue(self._core, self._streams))
        check_replacement(member, resolved)
        template, constants = parametrise(resolved)
        group = registry.group_for(template, constants, registry.incarnation, earlier.max_catch_up)
        cohort, handover = member.cohort, None
        if member.point is not None and cohort is not None and cohort.trigger is not None:
            handover = hand_over_member(earlier, member.point, cohort.trigger.last, group)
        if handover is not None:
            check_due(self._core.limits, member, group, handover, replaying=self._schedule.replaying)
            if not may_join(group, handover):
                group = registry.group_for(template, constants, self._history.new_incarnation(), earlier.max_catch_up)
        parameters = tuple(self._core.term_id(constant) for constant in constants)
        registry.leave(member)  # from here on, nothing fails
        if cohort is not None and len(cohort) and (before := cohort.predecessor) is not None:
            # Drop the rows of the earlier text, because the member can join this cohort again, as a new member.
            cohort.predecessor = AnswerVersion(cohort.members, before.renumbered(cohort.members), leases=before.leases)
        registry.add(group)
        member.become(base, ir, group, parameters)
        if handover is None:
            registry.begin_now(member)
        else:
            if (gap := handover.gap(group.grid)) is not None:
                member.skip([gap])
            registry.begin_after(member, handover.point, handover.after)
        registry.drop_if_empty(earlier)
