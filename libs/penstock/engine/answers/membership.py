"""The members for which a cohort's plan is executed: the numbers of the members, and the table of the members'
constants.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.core import _native as native
    from penstock.core._native import Ids


class Recipient(Protocol):
    """A registered query, with only the properties that an execution needs."""

    @property
    def name(self) -> str:
        """The query's name."""

    @property
    def parameters(self) -> tuple[int, ...]:
        """The ids of the query's constants, in the order of the template's parameters."""


class Membership:
    """An immutable list of members. The numbers of members start at 1, because 0 stands for an unbound cell in the
    hidden member column.

    `all` contains the members in the order of their numbers. After a restart, `all` has None in place of a removed
    member. `one_reader`: whether one reader consumes the evaluations of all members.
    """

    one_reader: ClassVar[bool] = False

    def __init__(self, members: Iterable[Recipient | None]) -> None:
        self.all = tuple(members)

    @cached_property
    def _numbers(self) -> dict[Recipient, int]:
        return {member: number for number, member in enumerate(self.all, 1) if member is not None}

    @cached_property
    def seed(self) -> tuple[Ids, ...]:
        """The plan's seed table: the members' numbers, and one column per parameter of the template."""
        parameters = np.array([member.parameters for member in self.all if member is not None], np.uint64)
        parameters = parameters.reshape(len(self.all), -1)
        numbers = np.arange(1, len(self.all) + 1, dtype=np.uint64)
        return (numbers, *(np.ascontiguousarray(column) for column in parameters.T))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The members' names, in the order of the members' numbers. A removed member has "" in place of its name."""
        return tuple(["" if member is None else member.name for member in self.all])

    @property
    def parameters(self) -> native.Seed | tuple[Ids, ...]:
        """The seed table as an argument of `native.execute`. For the members of a query set, the table is a `Seed`. For
        other members, it is a tuple of columns.
        """
        return self.seed

    def __len__(self) -> int:
        return len(self.all)

    def touch_keys(self, dictionary: native.Dictionary, numbers: Ids | None) -> bool:  # noqa: ARG002 - see SetMembership
        """Mark the terms of the keys of the members `numbers` (None: of all members) as used. Returns whether there are
        keys: the members belong to a query set.
        """
        return False

    def number_of(self, member: Recipient) -> int | None:
        """Return the number of a member, or None if this list does not contain the member."""
        return self._numbers.get(member)

    def renumbered(self, earlier: Membership, numbers: Ids) -> Ids:
        """Convert member numbers of `earlier` to the numbers of this list. The result is 0 for members that this list
        does not contain.
        """
        found: Ids = self.renumbering(earlier)[numbers]
        return found

    def renumbering(self, earlier: Membership) -> Ids:
        """Return an array that maps the member numbers of `earlier` to the numbers of this list. The array has 0 at
        index 0, and for members that this list does not contain.
        """
        return np.array([0, *(self._numbers.get(m, 0) if m is not None else 0 for m in earlier.all)], np.uint64)
