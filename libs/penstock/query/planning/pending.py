"""Placement of a group's conditions: each is tested as soon as its variables are bound."""

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
    """Names that may be bound after a position: `last` has the last binding position of each name.

    `home`: for a group with several parts, the part of each name. All names of other parts are bound later, as are
    `apart` names.
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
    """Return the names that a condition reads, including the graph variable for an EXISTS inside GRAPH ?g."""
    names = expression_variables(condition)
    return names | {scope.variable} if scope.variable is not None and tests_patterns(condition) else names


class Pending:
    """Conditions not yet placed, indexed by the names they read."""

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
        """Yield and remove the conditions that no later join can change, in order.

        `touched`: names bound since the last call; only conditions that read one of them are checked. None = check all.
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
