"""The rows of an answer as a cross product of independent parts. The product is expanded to whole columns only when
these columns are needed.

Two parts with n and m rows represent n·m rows, but need only the space of n + m rows. This is a factorised
representation of a query result (Olteanu and Závodný, TODS 40(1), 2015), but with products only. See docs/adr/0047.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice, product
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids

    Places: TypeAlias = tuple[tuple[int, int], ...]
    """A pair for each variable: the number of the variable's part, and the number of the column in this part."""

T = TypeVar("T")


@dataclass(frozen=True)
class Pairs:
    """The rows of an answer, as the cross product of the parts' rows. The rows of the last part vary fastest.

    `counts` is the number of rows of each part. A part without columns still multiplies the number of rows. `places`
    has a pair for each variable: the number of the variable's part, and the number of the variable's column.
    """

    parts: tuple[tuple[Ids, ...], ...]
    counts: tuple[int, ...]
    places: Places

    def __len__(self) -> int:
        return prod(self.counts)

    @property
    def held(self) -> tuple[Ids, ...]:
        """The columns of all parts, concatenated."""
        return tuple(chain.from_iterable(self.parts))

    @property
    def columns(self) -> tuple[Ids, ...]:
        """The column of each variable. The column has one value per row of the variable's part."""
        return tuple(self.parts[part][column] for part, column in self.places)

    @property
    def repeats(self) -> tuple[int, ...]:
        """A number n for each variable: n successive rows have the same row of the variable's part."""
        return tuple(prod(self.counts[part + 1 :]) for part, _ in self.places)

    def expand(self, held: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        """Return one whole column per variable. The argument `held` contains columns of values, in the same order as
        the property `held`.
        """
        return tuple(self._whole(part, held[self._first(part) + column]) for part, column in self.places)

    def rows(self, held: Sequence[Sequence[T]]) -> Iterator[tuple[T, ...]]:
        """Yield the rows of the columns that `expand(held)` would return. The call does not create these columns."""
        columns = iter(held)
        parts = [
            list(zip(*islice(columns, len(part)), strict=True)) if part else [()] * count
            for part, count in zip(self.parts, self.counts, strict=True)
        ]
        order = [self._first(part) + column for part, column in self.places]
        whole = (tuple(chain.from_iterable(row)) for row in product(*parts))
        if order == list(range(len(held))):
            return whole
        if len(order) == 1:
            return ((row[order[0]],) for row in whole)
        return map(itemgetter(*order), whole) if order else (() for _ in whole)

    def _first(self, part: int) -> int:
        return sum(len(columns) for columns in self.parts[:part])

    def _whole(self, part: int, column: NDArray[Any]) -> NDArray[Any]:
        before, after = prod(self.counts[:part]), prod(self.counts[part + 1 :])
        return np.tile(np.repeat(column, after), before)
