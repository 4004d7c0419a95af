"""The group of a query set, and the cohorts of this group. The members of these cohorts are columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.sets.set_members import MemberColumns, SetMembership, joined
from penstock.engine.standing.groups import Cohort, Group, Member

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.answers.block_log import Unpolled
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.sets.step_queue import StepQueue
    from penstock.engine.windows.window_contents import WindowPool
    from penstock.query.set_templates import SetTemplate

_MAX_PARTS = 64  # of added members, before they are joined


class SetCohort(Cohort):
    """The members of a query set with the same windows. The cohort collects additions and removals of members. The next
    read of the members applies the additions and removals to the columns.
    """

    def __init__(self, group: SetGroup, number: int) -> None:
        super().__init__(group, number)
        self._set_group = group
        self._columns = MemberColumns.empty(len(group.set_template.names), len(group.owner.key))
        self._added: list[MemberColumns] = []
        self._removed: list[Ids] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Member]:
        return iter((self._set_group.owner,) if self._count else ())

    @property
    def first(self) -> Member:
        """The query set."""
        return self._set_group.owner

    @property
    def members(self) -> SetMembership:
        """The current members with their numbers."""
        if not isinstance(self._members, SetMembership):
            self._members = SetMembership(self.columns, self._set_group.set_template.occurrences)
        return self._members

    @property
    def columns(self) -> MemberColumns:
        """The current members."""
        if self._added:
            self._columns = joined([self._columns, *self._added] if len(self._columns) else self._added)
            self._added = []
        if self._removed:
            self._columns = self._columns.without(np.concatenate(self._removed))
            self._removed = []
        return self._columns

    def extend(self, columns: MemberColumns) -> None:
        """Add members."""
        self._added.append(columns)
        if len(self._added) > _MAX_PARTS:
            self._added = [joined(self._added)]
        self._count += len(columns)
        self._members = None

    def drop(self, numbers: Ids) -> None:
        """Remove members. The members must be in the cohort."""
        if len(numbers):
            self._removed.append(numbers)
            self._count -= len(numbers)
            self._members = None

    def have(self, numbers: Ids) -> NDArray[np.bool_]:
        """Return a mask of the numbers that belong to members. The members are the current members, and the members
        that were removed after `columns` was last read.
        """
        found = self._columns.have(numbers)
        for part in self._added:
            found |= part.have(numbers)
        return found

    def parameters_of(self, numbers: Ids) -> tuple[NDArray[np.intp], tuple[Ids, ...]]:
        """Find the members of this cohort in a list of member numbers. Returns the positions of these members in
        `numbers`, and the parameters of these members.
        """
        columns = self.columns
        rows = columns.rows_of(numbers)
        found = np.flatnonzero(rows < len(columns))
        return found, columns.take(rows[found]).parameters

    def _adopt(self, other: Cohort) -> None:
        assert isinstance(other, SetCohort)
        self.extend(other.columns)

    def dissolve(self, pool: WindowPool) -> None:
        """Release the windows and remove the members. The cohort is not evaluated any more."""
        self._set_group.owner.result_queue.leave(self.log)
        super().dissolve(pool)
        self._columns = MemberColumns.empty(len(self._columns.parameters), len(self._columns.keys))
        self._added, self._removed, self._count = [], [], 0


class SetOwner(Member):
    """The part of a query set that the set's group uses."""

    key: tuple[str, ...]
    result_queue: StepQueue


class SetGroup(Group):
    """The group of a query set. `owner` is the set. The group has no cohort while the set has no members."""

    def __init__(
        self,
        set_template: SetTemplate,
        streams: Sequence[LiveStream],
        incarnation: int,
        unpolled: Unpolled,
        max_catch_up: int | None = None,
    ) -> None:
        super().__init__(set_template.template, streams, incarnation, unpolled, max_catch_up)
        self.set_template = set_template
        self.owner: SetOwner

    def new_cohort(self, number: int) -> SetCohort:
        """Return a new cohort. The set consumes the results of this cohort."""
        cohort = SetCohort(self, number)
        self.owner.result_queue.follow(cohort.log)
        return cohort

    def names(self) -> list[str]:
        """Return the name of the set."""
        return [self.owner.name]

    def cohort_of(self, point: int | None, number: int, pool: WindowPool) -> SetCohort:
        """Return the separate cohort of registration point `point` (see `cohort_for`)."""
        cohort = self.cohort_for(point, number, pool)
        assert isinstance(cohort, SetCohort)
        return cohort

    def set_cohorts(self) -> list[SetCohort]:
        """Return all cohorts."""
        return [cohort for cohort in self.cohorts if isinstance(cohort, SetCohort)]

    def drop(self, numbers: Ids, pool: WindowPool) -> None:
        """Remove members. Then remove the cohorts that have no members."""
        for cohort in self.set_cohorts():
            cohort.drop(numbers[cohort.have(numbers)])
            if not len(cohort):
                self._end_cohort(cohort, pool)

    def leave(self, member: Member, pool: WindowPool) -> None:  # noqa: ARG002 - the set itself
        """Remove all members, because the set is stopped."""
        for cohort in self.set_cohorts():
            self._end_cohort(cohort, pool)

    def _end_cohort(self, cohort: Cohort, pool: WindowPool) -> None:
        cohort.dissolve(pool)
        if cohort is self.main:
            self.main = None
        else:
            del self.apart[cohort.point]
