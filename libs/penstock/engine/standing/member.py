"""A member of a group: a registered query inside the engine."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from penstock.engine.answers.result_queue import ResultQueue
from penstock.event_time.gaps import MAX_GAPS, Gap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.engine.standing.cohorts import Cohort
    from penstock.engine.standing.groups import Group
    from penstock.query.ir import ContinuousQuery
    from penstock.query.templates import Constant


class Member:
    """A registered query. `constants` and `parameters` (their ids) are in the order of the template's parameters.
    `point` is P.
    """

    def __init__(
        self,
        name: str,
        base: str | None,
        ir: ContinuousQuery,
        group: Group,
        constants: tuple[Constant, ...],
        parameters: tuple[int, ...],
        listeners: set[ResultQueue],
    ) -> None:
        self.name = name
        self.base = base
        self.ir = ir
        self.group = group
        self.constants = constants
        self.parameters = parameters
        self.result_queue = ResultQueue(self, listeners)
        self.point: int | None = None
        self.gaps: deque[Gap] = deque(maxlen=MAX_GAPS)
        self.cohort: Cohort | None = None

    def __repr__(self) -> str:
        return f"<Member {self.name}>"

    def joins(self, cohort: Cohort) -> None:
        """Join a cohort, which evaluates the member from now on."""
        self.cohort = cohort
        self.result_queue.follow(cohort.log)


def fullest(members: Iterable[Member]) -> Member | None:
    """Return the member without a subscriber that holds the most bytes; None if no such member holds any."""
    sizes = {member: member.result_queue.bytes() for member in members if not member.result_queue.subscribed}
    found = max(sizes, key=sizes.__getitem__, default=None)
    return found if found is not None and sizes[found] else None
