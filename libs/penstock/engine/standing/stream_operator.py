"""RSTREAM, ISTREAM and DSTREAM over the rows of a whole cohort at once (CQL; docs/semantics.md §5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.rows import Rows
from penstock.query.ir import RelationToStream

if TYPE_CHECKING:
    from penstock.core._native import Ids
    from penstock.engine.answers.membership import Membership


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The answers at a cohort's previous instant, numbered by the membership of that time."""

    members: Membership
    rows: Rows

    def ids(self) -> tuple[Ids, ...]:
        """Every column of term ids: the dictionary must not forget them."""
        return self.rows.columns

    def renumbered(self, members: Membership) -> Rows:
        """Return the rows with the numbers of today's members; those of members that left are gone."""
        if members is self.members:
            return self.rows
        numbers = members.renumbering(self.members)[self.rows.member]
        order = np.argsort(numbers, kind="stable")
        retained = order[numbers[order] != 0]
        rows = self.rows.take(retained)
        return Rows(numbers[retained], rows.columns, rows.decoder)

    def merged(self, other: Predecessor, members: Membership) -> Predecessor:
        """Return the predecessor of two cohorts that have become one."""
        mine, theirs = self.renumbered(members), other.renumbered(members)
        columns = tuple(np.concatenate(pair) for pair in zip(mine.columns, theirs.columns, strict=True))
        both = Rows(np.concatenate((mine.member, theirs.member)), columns, mine.decoder or theirs.decoder)
        return Predecessor(members, both.take(np.argsort(both.member, kind="stable")))


def as_stream(operator: RelationToStream, now: Rows, before: Rows | None) -> Rows:
    """Return what the operator reports, given (published) rows of this instant and of the one before.

    Differences are of multisets, member by member; triples of a CONSTRUCT are distinct, so theirs are of sets.
    """
    if operator is RelationToStream.RSTREAM:
        return now
    if before is None or len(before.member) == 0:
        return now if operator is RelationToStream.ISTREAM else now.take(np.empty(0, np.int64))
    larger, smaller = (now, before) if operator is RelationToStream.ISTREAM else (before, now)
    retained = native.multiset_difference((larger.member, *larger.columns), (smaller.member, *smaller.columns))
    taken = larger.take(np.sort(retained))
    return Rows(taken.member, taken.columns, now.decoder or before.decoder)
