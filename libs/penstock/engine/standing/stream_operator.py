"""RSTREAM, ISTREAM and DSTREAM over the rows of a whole cohort at once (CQL; docs/semantics.md §5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.answer_values import publish
from penstock.query.ir import RelationToStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.answers.answer_values import Decoder
    from penstock.engine.standing.membership import Membership


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of an execution, sorted by member: the member column, then the answer's columns."""

    member: Ids
    columns: tuple[Ids, ...]
    decoder: Decoder | None

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows, in the order given."""
        return Rows(self.member[rows], tuple(column[rows] for column in self.columns), self.decoder)

    def spans(self) -> tuple[Ids, NDArray[np.int64]]:
        """Return the members with rows, ascending; and where the rows of each begin, and at the end their number."""
        return native.runs(self.member)

    @property
    def held(self) -> tuple[Ids, ...]:
        """The columns of ids that it keeps."""
        return self.columns

    def published(self) -> Rows:
        """Return the same rows with ids that other executions understand."""
        if self.decoder is None or not self.columns:
            return self
        return Rows(self.member, publish(self.columns, self.decoder), self.decoder)

    def settled(self, dictionary: native.Dictionary) -> Rows:
        """Return (published) rows with the source's ids wherever a partial dictionary's source knows the term by now.

        A term that was computed at one instant may be in the data of the next.
        """
        return Rows(self.member, tuple(dictionary.settle(column) for column in self.columns), self.decoder)


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


def joined(parts: Sequence[Rows]) -> Rows:
    """Return (published) rows of several executions as one, sorted by member."""
    member = np.concatenate([rows.member for rows in parts])
    columns = tuple(np.concatenate(columns) for columns in zip(*(rows.columns for rows in parts), strict=True))
    decoder = next((rows.decoder for rows in parts if rows.decoder is not None), None)
    return Rows(member, columns, decoder).take(np.argsort(member, kind="stable"))
