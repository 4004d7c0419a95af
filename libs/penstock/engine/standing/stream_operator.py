"""RSTREAM, ISTREAM and DSTREAM (CQL; docs/semantics.md §5), applied to the rows of a whole cohort at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.rows import Changes, Rows, joined
from penstock.query.ir import RelationToStream

if TYPE_CHECKING:
    from penstock.core._native import Ids
    from penstock.engine.answers.membership import Membership


_FEW_ROWS = 4096  # changes of fewer rows are not applied before they are needed


class Predecessor:
    """The rows of a cohort at its previous instant. Their member numbers are those of `members`, the membership at that
    instant. A Predecessor always has the same rows; the next instant gets a new one.

    `answer_id`: identifies the execution whose answer these rows are (`Execution.answer_id`), or 0. `changes`: the
    changes that lead from the parameter `rows` to these rows. They are applied when the rows are read.
    """

    __slots__ = ("_changes", "_rows", "_size", "answer_id", "members")

    def __init__(
        self, members: Membership, rows: Rows, answer_id: int = 0, changes: tuple[Changes, ...] = (), size: int = 0
    ) -> None:
        self.members, self.answer_id = members, answer_id
        self._rows, self._changes, self._size = rows, changes, size

    @property
    def rows(self) -> Rows:
        """The rows, sorted by member."""
        if self._changes:
            self._rows, self._changes, self._size = _applied(self._rows, self._changes), (), 0
        return self._rows

    def followed_by(self, changes: Changes, answer_id: int) -> Predecessor:
        """Return the predecessor after an execution with these changes. The changes must be `published`."""
        size = self._size + len(changes.added.member) + len(changes.removed.member)
        if size > max(len(self._rows.member), _FEW_ROWS):
            return Predecessor(self.members, _applied(self._rows, (*self._changes, changes)), answer_id)
        return Predecessor(self.members, self._rows, answer_id, (*self._changes, changes), size)

    def ids(self) -> tuple[Ids, ...]:
        """Return all columns of term ids, whose terms the dictionary must retain."""
        changed = [column for changes in self._changes for column in changes.added.columns]
        return (*self._rows.columns, *changed)

    def renumbered(self, members: Membership) -> Rows:
        """Return the rows with the member numbers of `members`, without rows of members that are not in `members`."""
        if members is self.members:
            return self.rows
        numbers = members.renumbered(self.members, self.rows.member)
        order = np.argsort(numbers, kind="stable")
        retained = order[numbers[order] != 0]
        rows = self.rows.take(retained)
        return Rows(numbers[retained], rows.columns, rows.decoder)

    def merged(self, other: Predecessor, members: Membership) -> Predecessor:
        """Return the predecessor of the cohort into which two cohorts are merged. `other`: the predecessor of the other
        cohort. `members`: the members of both cohorts.
        """
        mine, theirs = self.renumbered(members), other.renumbered(members)
        columns = tuple(np.concatenate(pair) for pair in zip(mine.columns, theirs.columns, strict=True))
        both = Rows(np.concatenate((mine.member, theirs.member)), columns, mine.decoder or theirs.decoder)
        return Predecessor(members, both.take(np.argsort(both.member, kind="stable")))


def _applied(rows: Rows, changes: tuple[Changes, ...]) -> Rows:
    """Return the rows after all changes. A row that was added and later removed is not in the result."""
    larger = joined([rows, *(change.added for change in changes)])
    removed = joined([change.removed for change in changes])
    if len(removed.member) == 0:
        return larger
    left = native.multiset_difference((larger.member, *larger.columns), (removed.member, *removed.columns))
    return larger.take(np.sort(left))


def as_stream(operator: RelationToStream, now: Rows, before: Rows | None) -> Rows:
    """Return the rows that the operator reports. `now`, `before`: the rows of this instant and of the previous one,
    after `Rows.published()`: only then can ids of computed terms be compared.

    ISTREAM and DSTREAM report multiset differences for each member. The triples of a CONSTRUCT are distinct, so their
    differences are set differences.
    """
    if operator is RelationToStream.RSTREAM:
        return now
    if before is None or len(before.member) == 0:
        return now if operator is RelationToStream.ISTREAM else now.take(np.empty(0, np.int64))
    larger, smaller = (now, before) if operator is RelationToStream.ISTREAM else (before, now)
    retained = native.multiset_difference((larger.member, *larger.columns), (smaller.member, *smaller.columns))
    taken = larger.take(np.sort(retained))
    return Rows(taken.member, taken.columns, now.decoder or before.decoder)
