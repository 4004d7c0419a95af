"""Registration of a standing query whose text is neither parsed nor planned. This is possible if the text differs from
an earlier text only in constants and name (docs/adr/0088-prepared-texts.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from penstock.engine.standing.groups import Member

if TYPE_CHECKING:
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.standing.groups import Group
    from penstock.engine.standing.registry import Registry
    from penstock.query.prepared import BoundStanding, PreparedQuery


class PreparedRegistration:
    """The groups of prepared queries."""

    def __init__(self, core: EngineCore, registry: Registry) -> None:
        self._core = core
        self._registry = registry
        # the first dictionary: queries without `changes`; the second: queries with `changes`
        self._groups: tuple[WeakKeyDictionary[PreparedQuery, Group], ...] = WeakKeyDictionary(), WeakKeyDictionary()

    def register(self, bound: BoundStanding, name: str | None, base: str | None, *, changes: bool) -> Member | None:
        """Add a standing query. Returns the query as a member. If the query has no group or cannot be added, the result
        is None, and the call has no effect. The caller must then parse the text. Parameters: see `Registry.register`.
        """
        registry = self._registry
        group = self._groups[changes].get(bound.query.prepared)
        if group is None or group.plan is None or group.incarnation != registry.incarnation:
            return None
        name = name or bound.name or registry.free_name()
        if name in registry.members or len(registry.members) >= self._core.limits.max_queries:
            return None
        parameters = tuple([self._core.term_id(constant) for constant in bound.query.constants])
        member = registry.members[name] = Member(name, base, bound, group, parameters, registry.listeners)
        registry.begin_now(member)
        return member

    def registered(self, bound: BoundStanding, member: Member) -> None:
        """Record the group of `member`, so that later texts that differ from `bound` only in constants can join this
        group.
        """
        self._groups[member.changes][bound.query.prepared] = member.group
