"""Versions of a cohort's answer. A version represents all rows at an instant. A version has two parts: the rows of an
earlier instant, and the changes since that earlier instant.

Stream operators and evaluations with `changes` compare an answer with the previous version (ADR 81, ADR 86).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.rows import Changes, Rows, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import Ids
    from penstock.engine.answers.membership import Membership


_FEW_ROWS = 4096  # changes of fewer rows are not applied before they are needed


class AnswerVersion:
    """The rows of a cohort at an instant. `members` is the membership at that instant. The rows have the member numbers
    of `members`. The rows of a version never change, so any thread can read them. The next instant gets a new version.

    `answer_id` identifies the execution that has returned this answer (`Execution.answer_id`). The id is 0 if no later
    execution can refer to this answer. The parameter `rows` contains earlier rows. The parameter `changes` contains the
    changes from these earlier rows to the rows of this version. These changes are applied when the rows of this version
    are read. The leases in `leases` retain the terms of the rows. If `leases` is (), the caller must retain the terms
    of `ids`.

    `tracked`: whether later versions retain the changes since this version (see `track`).
    """

    __slots__ = ("_parts", "_since", "answer_id", "leases", "members", "tracked")

    def __init__(
        self,
        members: Membership,
        rows: Rows,
        answer_id: int = 0,
        changes: tuple[Changes, ...] = (),
        leases: tuple[object, ...] = (),
    ) -> None:
        self.members, self.answer_id, self.leases = members, answer_id, leases
        self._parts = rows, changes  # one attribute, so that another thread sees both or neither
        self._since: tuple[AnswerVersion, tuple[Changes, ...]] | None = None  # a tracked version, and the changes since
        self.tracked = False

    @property
    def rows(self) -> Rows:
        """The rows, sorted by member."""
        rows, changes = self._parts
        if changes:
            rows = _applied(rows, changes)
            self._parts = rows, ()
        return rows

    def rows_of(self, numbers: Ids) -> Rows:
        """Return the rows of the members `numbers`. The numbers must be ascending. The cost depends only on these
        members.
        """
        rows, changes = self._parts
        chosen = rows.of_members(numbers)
        if not changes:
            return chosen
        return _applied(chosen, tuple(change.of_members(numbers) for change in changes))

    @property
    def parts(self) -> tuple[Rows, tuple[Changes, ...]]:
        """The rows of an earlier version, and the changes from that version to this version."""
        return self._parts

    @property
    def row_count(self) -> int:
        """The number of rows. To compute it, the changes since the last whole answer need not be applied."""
        rows, changes = self._parts
        return len(rows) + sum(len(change.added) - len(change.removed) for change in changes)

    def track(self) -> None:
        """From now on, later versions retain the changes since this version. This version no longer retains the changes
        since an earlier version.
        """
        self.tracked, self._since = True, None

    def followed_by(self, changes: Changes, answer_id: int) -> AnswerVersion:
        """Return the version that follows this version after an execution. `changes` are the changes that the execution
        has returned. The changes must be `published`.
        """
        rows, before = self._parts
        now = _compacted(before, changes)
        if sum(map(len, now)) > max(len(rows), _FEW_ROWS):
            rows, now = _applied(rows, now), ()
        version = AnswerVersion(self.members, rows, answer_id, now, self.leases)
        earlier, since = (self, ()) if self.tracked else self._since or (None, ())
        if earlier is not None:
            version._since = earlier, _compacted(since, changes)
        return version

    def changes_since(self, earlier: AnswerVersion) -> Changes:
        """Return the changes from an earlier version with the same members to this version. If the earlier version is
        `tracked` and all later evaluations have returned changes, the cost depends only on the number of changes.
        """
        if earlier is self:
            nothing = self._parts[0].take(np.empty(0, np.int64))
            return Changes(nothing, nothing)
        if self._since is None or self._since[0] is not earlier:
            return Changes(difference(self.rows, earlier.rows), difference(earlier.rows, self.rows))
        parts = self._since[1] or (earlier.changes_since(earlier),)
        added, removed = joined([part.added for part in parts]), joined([part.removed for part in parts])
        return Changes(difference(added, removed), difference(removed, added))

    def ids(self) -> tuple[Ids, ...]:
        """Return all columns of term ids. The dictionary must retain the terms of these ids."""
        rows, parts = self._parts
        since = () if self._since is None else self._since[1]
        changed = [column for changes in (*parts, *since) for column in changes.added.columns]
        return (*rows.columns, *changed)

    def renew(self, dictionary: native.Dictionary) -> None:
        """Replace the leases by a new lease. Call this method before a sweep of the dictionary. After the call, the
        caller must mark the terms of `ids` as used.

        If many rows have changed, the call also applies the changes. In this case, `ids` no longer contains the terms
        of removed rows.
        """
        rows, changes = self._parts
        if sum(map(len, changes)) > len(rows) // 4:
            self._parts = self.rows, ()
        if self.leases:
            self.leases = (dictionary.lease(),)

    def renumbered(self, members: Membership) -> Rows:
        """Return the rows, converted to the member numbers of `members`. Rows of members that are not in `members` are
        left out.
        """
        if members is self.members:
            return self.rows
        numbers = members.renumbered(self.members, self.rows.member)
        order = np.argsort(numbers, kind="stable")
        retained = order[numbers[order] != 0]
        rows = self.rows.take(retained)
        return Rows(numbers[retained], rows.columns, rows.decoder)

    def merged(self, other: AnswerVersion, members: Membership) -> AnswerVersion:
        """Return the answer's version for a cohort that replaces two cohorts. `self` is the version of the first
        cohort, and `other` is the version of the second. `members` contains the members of both cohorts.
        """
        mine, theirs = self.renumbered(members), other.renumbered(members)
        columns = tuple(np.concatenate(pair) for pair in zip(mine.columns, theirs.columns, strict=True))
        both = Rows(np.concatenate((mine.member, theirs.member)), columns, mine.decoder or theirs.decoder)
        rows = both.take(np.argsort(both.member, kind="stable"))
        return AnswerVersion(members, rows, leases=self.leases + other.leases)


@dataclass(frozen=True, slots=True)
class AnswerChanges:
    """The answers of an execution for a query with `changes`. `now` is the version of the answer. `changes` contains
    the differences from the previous version, by member. `bytes` is the size in bytes of the rows that no earlier block
    contains. `before` contains the members of the previous version, or is None if there is no previous version.
    """

    now: AnswerVersion
    changes: Changes
    bytes: int
    before: Membership | None = None


def difference(larger: Rows, smaller: Rows | None) -> Rows:
    """Return the rows of `larger` without the rows of `smaller`, as a multiset difference. The order of `larger`
    remains. The rows must be `published`, because only then can the ids of computed terms be compared.
    """
    if smaller is None or not len(smaller) or not len(larger):
        return larger
    left = native.multiset_difference((larger.member, *larger.columns), (smaller.member, *smaller.columns))
    return larger.take(np.sort(left))


def _compacted(earlier: Sequence[Changes], latest: Changes) -> tuple[Changes, ...]:
    """Return all changes, merged into a few parts. Each part is at least twice as large as the next part. The number of
    copies of a row is therefore at most logarithmic in the number of changes.
    """
    if not len(latest):
        return tuple(earlier)
    parts = [*earlier, latest.undecoded()]
    while len(parts) > 1 and len(parts[-2]) < 2 * len(parts[-1]):
        last, before = parts.pop(), parts.pop()
        parts.append(Changes(joined([before.added, last.added]), joined([before.removed, last.removed])))
    return tuple(parts)


def _applied(rows: Rows, changes: tuple[Changes, ...]) -> Rows:
    """Return the rows after all changes. A row that was added and later removed is not in the result."""
    larger = joined([rows, *(change.added for change in changes)])
    return difference(larger, joined([change.removed for change in changes]))
