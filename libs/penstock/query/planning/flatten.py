"""Divides group graph patterns into elements that can be joined in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.query.algebra.graph_use import binds_graph
from penstock.query.algebra.scope import all_variables, certain, expression_variables, pattern_variables, visible
from penstock.query.algebra.tree import (
    Bgp,
    Call,
    Expr,
    Filter,
    Graph,
    Iri,
    Join,
    Node,
    PathTriple,
    Triple,
    WindowGraph,
)
from penstock.query.planning.relations import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.query.algebra.scope import Names
    from penstock.query.datasets import QueryDataset


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a group, with its scope. An element is a triple pattern, a path, or another pattern that is joined
    as a whole.
    """

    pattern: Triple | PathTriple | Node
    scope: Scope

    @property
    def binds(self) -> Names:
        """The names that a join with the element always or sometimes binds."""
        own = frozenset((self.scope.variable,)) if self.scope.variable is not None else frozenset()
        if isinstance(self.pattern, (Triple, PathTriple)):
            return pattern_variables(self.pattern) | own
        return visible(self.pattern) | own

    @property
    def reads(self) -> Names:
        """The names that the element always or sometimes binds, and the names that its expressions read."""
        if isinstance(self.pattern, (Triple, PathTriple)):
            return self.binds
        return self.binds | all_variables(self.pattern)


@dataclass(frozen=True, slots=True)
class FlatGroup:
    """The conditions of a group, and the elements that a plan must join."""

    elements: tuple[Element, ...]
    filters: tuple[tuple[Expr, Scope], ...]


def graph_scope(node: Graph | WindowGraph, dataset: QueryDataset) -> Scope:
    """Return the scope of the pattern inside of a GRAPH or WINDOW."""
    if isinstance(node, WindowGraph):
        return Scope(dataset.window(node.name.value))
    if isinstance(node.name, Iri):
        return Scope(dataset.graph(node.name.value))
    return Scope(dataset.named, node.name.name)


def conjuncts(expr: Expr) -> list[Expr]:
    """Return the conjuncts of a condition such as `a && b && c`. A filter retains a row if and only if every conjunct
    is true.
    """
    if isinstance(expr, Call) and expr.name == "and":
        return [part for argument in expr.args for part in conjuncts(argument)]
    return [expr]


def flatten(node: Node, scope: Scope, dataset: QueryDataset, around: Names = frozenset()) -> FlatGroup:
    """Divide a group into elements and conditions. `around`: names that can be bound outside of `node`. The filter of a
    nested group becomes a condition of the whole group only if every solution of the nested group binds the shared
    names. Shared names are the names in the filter that are also in `around`.
    """
    match node:
        case Bgp():
            return FlatGroup(tuple(Element(pattern, scope) for pattern in node.patterns), ())
        case Join():
            left = flatten(node.left, scope, dataset, around | visible(node.right))
            right = flatten(node.right, scope, dataset, around | visible(node.left))
            return FlatGroup(left.elements + right.elements, left.filters + right.filters)
        case Filter() if expression_variables(node.condition) & around <= certain(node.inner):
            inner = flatten(node.inner, scope, dataset, around)
            own = tuple((condition, scope) for condition in conjuncts(node.condition))
            return FlatGroup(inner.elements, inner.filters + own)
        case WindowGraph():
            return flatten(node.inner, graph_scope(node, dataset), dataset, around)
        case Graph() if isinstance(node.name, Iri) and (binds_graph(node.inner) or dataset.lists(node.name.value)):
            return flatten(node.inner, graph_scope(node, dataset), dataset, around)
        case Graph() if isinstance(node.inner, Bgp) and binds_graph(node.inner):
            return flatten(node.inner, graph_scope(node, dataset), dataset, around)
        case _:
            return FlatGroup((Element(node, scope),), ())


def components(
    elements: Sequence[Element], bound: Names, fixed: Names, substituted: Names = frozenset()
) -> list[list[Element]]:
    """Divide the elements into connected parts. Elements are connected if they share a variable, directly or through
    other elements.

    `bound`: names of the rows on the left. The first part consists of the elements that are connected with these names,
    and of elements without variables. `fixed`: names that connect no elements (parameters). `substituted`: names that
    an EXISTS substitutes. Such a name also connects elements that only read the name.
    """
    anchor = bound - fixed
    joined = _Joined(len(elements) + 1)  # number 0 stands for the rows on the left
    owners = dict.fromkeys(anchor, 0)
    for number, element in enumerate(elements, start=1):
        names = (element.binds | element.reads & substituted if substituted else element.binds) - fixed
        if not names:
            joined.merge(0, number)
        for name in names:
            joined.merge(owners.setdefault(name, number), number)
    parts: dict[int, list[Element]] = {joined.part(0): []}
    for number in range(len(elements), 0, -1):  # a part has the position of its last element
        parts.setdefault(joined.part(number), []).append(elements[number - 1])
    first, *others = (list(reversed(part)) for part in parts.values())
    found = [first, *reversed(others)]
    return found if found[0] or anchor or len(found) == 1 else found[1:]


class _Joined:
    """Disjoint sets of numbers (union-find)."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def part(self, number: int) -> int:
        """Return the representative of the set that contains `number`."""
        above = self._above
        while above[number] != number:
            above[number] = number = above[above[number]]
        return number

    def merge(self, one: int, other: int) -> None:
        """Merge the sets that contain `one` and `other`."""
        self._above[self.part(other)] = self.part(one)
