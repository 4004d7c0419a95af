"""Who takes part in an execution: the members of a cohort, their numbers, and the table of their constants."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.engine.answers import Ids
    from penstock.engine.standing import Query


class Membership:
    """An immutable list of members. Numbers count from 1: 0 would be an unbound cell of the hidden member column.

    (A restored one may have None in the place of a query that is gone.)
    """

    def __init__(self, queries: Iterable[Query | None]) -> None:
        self.queries = tuple(queries)
        self._numbers = {query: number for number, query in enumerate(self.queries, 1) if query is not None}

    @cached_property
    def seed(self) -> tuple[Ids, ...]:
        """The plan's seed table: the members' numbers, then one column for each parameter of the template."""
        parameters = np.array([query.parameters for query in self.queries if query is not None], np.uint64)
        parameters = parameters.reshape(len(self.queries), -1)
        numbers = np.arange(1, len(self.queries) + 1, dtype=np.uint64)
        return (numbers, *(np.ascontiguousarray(column) for column in parameters.T))

    def __len__(self) -> int:
        return len(self.queries)

    def number_of(self, query: Query) -> int | None:
        """Return the query's number, or None where it is no member."""
        return self._numbers.get(query)

    def renumbering(self, earlier: Membership) -> Ids:
        """Return, for each number of an earlier membership, the member's number here (0 where it is gone, and for
        0).
        """
        return np.array([0, *(self._numbers.get(q, 0) if q is not None else 0 for q in earlier.queries)], np.uint64)
