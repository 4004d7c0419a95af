"""Factorised results of a cohort: the rows of each member are the cross product of several factors (docs/adr/0047)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.answers.pairs import Pairs
from penstock.engine.answers.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.answers.answer_values import Decoder
    from penstock.engine.answers.pairs import Places


@dataclass(frozen=True)
class Product:
    """The factors of a cohort's result. Each factor is sorted by member. A member's rows are the cross product of the
    member's rows in all factors. All ids are dictionary ids (`Rows.published`).
    """

    parts: tuple[Rows, ...]
    places: Places

    @property
    def decoder(self) -> Decoder | None:
        """A decoder for the ids of all factors. Any decoder accepts dictionary ids, so the first factor's decoder is
        used.
        """
        return self.parts[0].decoder

    @property
    def held(self) -> tuple[Ids, ...]:
        """The columns of all factors, in one tuple."""
        return tuple(chain.from_iterable(rows.columns for rows in self.parts))

    @cached_property
    def present(self) -> Ids:
        """The numbers of the members with rows in every factor, ascending."""
        found = [rows.spans()[0] for rows in self.parts]
        present = found[0]
        for others in found[1:]:
            present = np.intersect1d(present, others, assume_unique=True)
        return present

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The position of the first row of each present member, followed by the total number of rows."""
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.prod(self._counts, axis=0))))

    def spans(self) -> tuple[Ids, NDArray[np.int64]]:
        """Return `present` and `starts`."""
        return self.present, self.starts

    def bytes(self) -> float:
        """Return the size in bytes that the rows would have after an expansion to whole columns, including the member
        column.
        """
        return float(np.prod(self._counts, axis=0, dtype=np.float64).sum()) * 8 * (1 + len(self.places))

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """The number of rows of each present member in each factor."""
        counts = np.empty((len(self.parts), len(self.present)), np.int64)
        for i, rows in enumerate(self.parts):
            after = np.searchsorted(rows.member, self.present, side="right")
            counts[i] = after - np.searchsorted(rows.member, self.present, side="left")
        return counts

    def __len__(self) -> int:
        return int(self.starts[-1])

    def of(self, member: int) -> Pairs:
        """Return the rows of a member, as a cross product of the member's rows in each factor."""
        parts, counts = [], []
        for rows in self.parts:
            span = rows.span_of(member)
            parts.append(tuple(column[span] for column in rows.columns))
            counts.append(span.stop - span.start)
        return Pairs(tuple(parts), tuple(counts), self.places)

    def rows(self) -> Rows:
        """Return the rows of the cross product, sorted by member."""
        members = self.present.tolist()
        pairs = [self.of(member) for member in members]
        parts = [part.expand(part.held) for part in pairs]
        columns = zip(*parts, strict=True) if parts else ((np.empty(0, np.uint64),) for _ in self.places)
        return Rows(
            np.repeat(self.present, np.diff(self.starts)),
            tuple(np.concatenate(column) for column in columns),
            self.decoder,
        )
