"""The rows of an execution for a whole cohort: columns of term ids, sorted by member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.answer_values import publish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.answers.answer_values import Decoder


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of an execution, sorted by member. `member` contains the member number of each row. `columns` contains
    the columns of the answer. If `decoder` is None, the ids are dictionary ids.
    """

    member: Ids
    columns: tuple[Ids, ...]
    decoder: Decoder | None

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows at the positions `rows`, in the order of these positions."""
        return Rows(self.member[rows], tuple(column[rows] for column in self.columns), self.decoder)

    def __len__(self) -> int:
        return len(self.member)

    def span_of(self, member: int) -> slice:
        """Return the positions of a member's rows."""
        low = int(np.searchsorted(self.member, member, side="left"))
        return slice(low, int(np.searchsorted(self.member, member, side="right")))

    def of_members(self, numbers: Ids) -> Rows:
        """Return the rows of the members `numbers`. The numbers must be ascending. The cost depends mainly on these
        rows.
        """
        if not len(numbers) or not len(self.member):
            return self.take(np.empty(0, np.int64))
        first, end = (np.searchsorted(self.member, numbers, side=side) for side in ("left", "right"))
        counts = end - first
        before = np.cumsum(counts) - counts
        return self.take(np.arange(int(counts.sum())) + np.repeat(first - before, counts))

    def spans(self) -> tuple[Ids, NDArray[np.int64]]:
        """Return the members that have rows, ascending, and offsets. The rows of the i-th member are at the positions
        from offsets[i] (inclusive) to offsets[i + 1] (exclusive).
        """
        return native.runs(self.member)

    @property
    def held(self) -> tuple[Ids, ...]:
        """The columns of ids whose terms the dictionary must retain."""
        return self.columns

    @property
    def bytes(self) -> int:
        """The size of the rows in bytes."""
        return self.member.nbytes * (1 + len(self.columns))

    def published(self) -> Rows:
        """Return the rows, with dictionary ids in place of the ids of computed terms. Only the decoder of this
        execution can decode the ids of computed terms.
        """
        if self.decoder is None or not self.columns:
            return self
        return Rows(self.member, publish(self.columns, self.decoder), self.decoder)

    def settled(self, dictionary: native.Dictionary) -> Rows:
        """Return the rows with global ids in place of private ids, for the terms that `dictionary` has fetched from the
        cluster. The rows must be `published`.

        A computed term has a private id. When data contain the term later, the cluster gives the term a global id.
        """
        return Rows(self.member, tuple(dictionary.settle(column) for column in self.columns), self.decoder)


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between the answers of two executions. `added`: the rows that only the later answer contains.
    `removed`: the rows that only the earlier answer contains.
    """

    added: Rows
    removed: Rows

    def __len__(self) -> int:
        return len(self.added) + len(self.removed)

    @property
    def bytes(self) -> int:
        """The size of the rows in bytes."""
        return self.added.bytes + self.removed.bytes

    @property
    def members(self) -> Ids:
        """The numbers of the members with changes, ascending."""
        return np.union1d(self.added.member, self.removed.member)

    def of_members(self, numbers: Ids) -> Changes:
        """Return the changes of the members `numbers` (see `Rows.of_members`)."""
        return Changes(self.added.of_members(numbers), self.removed.of_members(numbers))

    def published(self) -> Changes:
        """Return the changes, with dictionary ids (see `Rows.published`)."""
        return Changes(self.added.published(), self.removed.published())

    def undecoded(self) -> Changes:
        """Return the changes without decoders, because a decoder retains the results of an execution. The changes must
        be `published`.
        """
        return Changes(*(Rows(rows.member, rows.columns, None) for rows in (self.added, self.removed)))


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several executions as one `Rows`, sorted by member. The rows must be `published`."""
    member = np.concatenate([rows.member for rows in parts])
    columns = tuple(np.concatenate(columns) for columns in zip(*(rows.columns for rows in parts), strict=True))
    decoder = next((rows.decoder for rows in parts if rows.decoder is not None), None)
    return Rows(member, columns, decoder).take(np.argsort(member, kind="stable"))
