"""The members of a query set as columns of ids. No member is an object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.membership import Membership

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids


@dataclass(frozen=True, slots=True)
class MemberColumns:
    """Members, in ascending order of their numbers. `parameters` has a column of ids for each declared parameter.
    `keys` has a column of ids for each column of the key. The number of a member never changes.
    """

    numbers: Ids
    parameters: tuple[Ids, ...]
    keys: tuple[Ids, ...]

    @classmethod
    def empty(cls, parameters: int, keys: int) -> MemberColumns:
        """Return columns without members. `parameters` and `keys` are the numbers of parameter columns and key
        columns.
        """
        none = np.empty(0, np.uint64)
        return cls(none, (none,) * parameters, (none,) * keys)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> MemberColumns:
        """Return the members at the positions `rows`, or where the mask `rows` is true."""
        taken: dict[int, Ids] = {}  # a column that is a parameter and a key is taken once

        def column(ids: Ids) -> Ids:
            if id(ids) not in taken:
                taken[id(ids)] = ids[rows]
            return taken[id(ids)]

        return MemberColumns(column(self.numbers), tuple(map(column, self.parameters)), tuple(map(column, self.keys)))

    def rows_of(self, numbers: Ids) -> NDArray[np.intp]:
        """Return the position of each member number. The position of a number that does not occur is `len(self)`."""
        if not len(self):
            return np.zeros(len(numbers), np.intp)
        if int(self.numbers[-1]) - int(self.numbers[0]) == len(self) - 1:  # no number is missing
            found: NDArray[np.intp] = np.minimum(numbers - self.numbers[0], np.uint64(len(self))).astype(np.intp)
            return found
        rows = np.searchsorted(self.numbers, numbers)
        rows[rows == len(self)] = 0
        rows[self.numbers[rows] != numbers] = len(self)
        return rows

    def have(self, numbers: Ids) -> NDArray[np.bool_]:
        """Return a mask of the numbers that belong to members."""
        return self.rows_of(numbers) < len(self)

    def without(self, numbers: Ids) -> MemberColumns:
        """Return all members except those with the given numbers."""
        rows = self.rows_of(numbers)
        stays = np.ones(len(self), np.bool_)
        stays[rows[rows < len(self)]] = False
        return self.take(stays)


def joined(parts: Sequence[MemberColumns]) -> MemberColumns:
    """Return the members of all parts."""
    if len(parts) == 1:
        return parts[0]
    made: dict[tuple[int, ...], Ids] = {}

    def column(columns: tuple[Ids, ...]) -> Ids:
        which = tuple(map(id, columns))
        if which not in made:
            made[which] = np.concatenate(columns)
        return made[which]

    numbers = column(tuple(part.numbers for part in parts))
    whole = MemberColumns(
        numbers,
        tuple(map(column, zip(*(part.parameters for part in parts), strict=True))),
        tuple(map(column, zip(*(part.keys for part in parts), strict=True))),
    )
    if bool((numbers[1:] > numbers[:-1]).all()):
        return whole
    return whole.take(np.argsort(numbers, kind="stable"))


class SetMembership(Membership):
    """The members of a query set for which a plan is executed. `occurrences` contains, for each parameter of the
    template, the index of the declared parameter.
    """

    one_reader = True

    def __init__(self, columns: MemberColumns, occurrences: tuple[int, ...] = ()) -> None:
        super().__init__(())
        self.columns = columns
        self._occurrences = occurrences
        # The keys are checked after as many marks as there are members, because a check costs as much.
        self._keys_permanent, self._touched, self._check_at = False, 0, len(columns)

    @cached_property
    def seed(self) -> tuple[Ids, ...]:
        """The plan's seed table: the members' numbers, and one column per parameter of the template."""
        return (self.columns.numbers, *(self.columns.parameters[i] for i in self._occurrences))

    @cached_property
    def parameters(self) -> native.Seed:
        """The seed table with indexes. The same object is used for all executions until members are added or
        removed.
        """
        return native.Seed(self.seed)

    def __len__(self) -> int:
        return len(self.columns)

    def renumbered(self, earlier: Membership, numbers: Ids) -> Ids:  # noqa: ARG002 - numbers do not change
        """Return the member numbers `numbers` of another list as numbers of this list. A member has the same number in
        both lists. The result is 0 for a member that this list does not contain.
        """
        return np.where(self.columns.have(numbers), numbers, np.uint64(0))

    def touch_keys(self, dictionary: native.Dictionary, numbers: Ids | None) -> bool:
        """Mark the terms of the keys of the members `numbers` (None: of all members) as used. Permanent terms need no
        mark. If this is so for all keys, later calls do nothing.
        """
        if not self._keys_permanent:
            self._touched += len(self) if numbers is None else len(numbers)
            if self._touched >= self._check_at:
                self._check_at = 4 * self._touched + len(self)
                self._keys_permanent = all(list(map(dictionary.touch, self.columns.keys)))
            elif numbers is None or len(numbers):
                rows = slice(None) if numbers is None else self.columns.rows_of(numbers)
                for column in self.columns.keys:
                    dictionary.touch(column[rows])
        return bool(self.columns.keys)
