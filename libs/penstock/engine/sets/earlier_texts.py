"""The texts of the last table of a query set.

Most rows of a sliding window are also in the next one. A table copies the texts of such rows from the table before.
This is one pass over both tables, in order of memory. The dictionary would be read at a random place for each term.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.core import _native as native
from penstock.engine.answers.arrow_terms import term_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.core._native import EarlierColumn, Ids, TermArrays, TermTexts

_LEAST_ROWS, _MOST_BYTES = 4096, 64 << 20  # of a retained column


class EarlierTexts:
    """The columns of the last table of a query set. They are used as long as the dictionary has dropped no terms: only
    then does an id still have the same term. Any thread can use this object.
    """

    def __init__(self) -> None:
        self._last: tuple[int, dict[tuple[int, int], EarlierColumn]] = (0, {})

    def table(self) -> TableTexts:
        """Return an object that makes the columns of the next table."""
        sweeps, columns = self._last
        now = native.dictionary_sweeps()
        return TableTexts(now, columns if sweeps == now else {})

    def retain(self, table: TableTexts) -> None:
        """Retain the texts of a table for the next one."""
        self._last = table.sweeps, table.made


class TableTexts:
    """Makes the columns of a table. `made` contains the columns whose texts the next table can use. `sweeps` is the
    number of sweeps of dictionaries before the first column was made.
    """

    def __init__(self, sweeps: int, earlier: dict[tuple[int, int], EarlierColumn]) -> None:
        self.sweeps, self._earlier = sweeps, earlier
        self.made: dict[tuple[int, int], EarlierColumn] = {}

    def reader(self, part: int, column: int, members: Ids) -> Callable[[Ids, TermTexts], list[TermArrays]]:
        """Return a function that reads the arrays of a column of a part of the table. `members` has the member of each
        row, ascending.
        """
        return partial(self._read, (part, column), members)

    def _read(self, place: tuple[int, int], members: Ids, ids: Ids, terms: TermTexts) -> list[TermArrays]:
        arrays = term_arrays(ids, terms, members, self._earlier.get(place))
        lexicals = arrays[0][1]
        if len(arrays) == 1 and len(ids) >= _LEAST_ROWS and len(lexicals[1]) <= _MOST_BYTES:
            self.made[place] = members, ids, lexicals
        return arrays
