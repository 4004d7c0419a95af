"""The conditions of a group that are not tested yet. Each is tested as soon as its variables are bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.query.algebra.graph_use import tests_patterns
from penstock.query.algebra.scope import expression_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.query.algebra.scope import Names
    from penstock.query.algebra.tree import Expr
    from penstock.query.planning.relations import Scope


@dataclass(frozen=True, slots=True)
class Later:
    """The set of names that can be bound after a position in the join order. `last`: for each name, the last position
    that binds the name.

    `home`: for each name, the number of the connected part that binds the name. `home` is set if a group has several
    connected parts (`components`). `part`: the number of the current part. Names of other parts are bound later.
    `apart`: further names that are bound later.
    """

    last: Mapping[str, int]
    position: int
    home: Mapping[str, int]
    part: int = 0
    apart: Names = frozenset()

    def __contains__(self, name: str) -> bool:
        if name in self.apart or self.home.get(name, self.part) != self.part:
            return True
        return self.last.get(name, -1) > self.position


def _reads(condition: Expr, scope: Scope) -> Names:
    """Return the names that a condition reads. An EXISTS inside of GRAPH ?g also reads the graph variable."""
    names = expression_variables(condition)
    return names | {scope.variable} if scope.variable is not None and tests_patterns(condition) else names


class Pending:
    """The conditions that are not tested yet, with an index by the names that they read."""

    def __init__(self, conditions: Iterable[tuple[Expr, Scope]]) -> None:
        self._waiting = {
            number: (condition, scope, _reads(condition, scope)) for number, (condition, scope) in enumerate(conditions)
        }
        self._readers: dict[str, list[int]] = {}
        for number, (_, _, names) in self._waiting.items():
            for name in names:
                self._readers.setdefault(name, []).append(number)
        self._looked = False

    def take(self, certain: Names, later: Later, touched: Names | None = None) -> Iterator[tuple[Expr, Scope]]:
        """Remove and yield, in their original order, the conditions whose result no later join can affect. `certain`:
        names that are bound in every row.

        `touched`: names that were bound since the last call. Only conditions that read one of these names are examined.
        The first call, and a call with None, examine all conditions.
        """
        if not self._waiting:
            return
        if touched is None or not self._looked:
            numbers = list(self._waiting)
        else:
            numbers = sorted({n for name in touched for n in self._readers.get(name, ()) if n in self._waiting})
        self._looked = True
        for number in numbers:
            condition, scope, names = self._waiting[number]
            if not any(name in later for name in names - certain):
                del self._waiting[number]
                yield condition, scope
